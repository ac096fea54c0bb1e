import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import type { FaultCode } from "../fault.ts";
import type { Stages } from "../read/stages.ts";

/** A request as far as it is traced. */
type Traced = {
  readonly route: string;
  readonly startedAtMs: number;
  readonly stages: Stages | undefined;
  readonly traceparent: string | null;
};

/** Where spans go. */
export type Traces = {
  /**
   * Takes one answered request: a span for it and one for each stage it came through, made afterwards of the moments it
   * noted. They hold the route's pattern, the status and the code, and nothing of the caller's.
   *
   * @returns the trace's id, 32 hex digits
   */
  readonly trace: (request: Traced, status: number, code: FaultCode | undefined, endedAtMs: number) => string;
  /** Sends what is left, for at most 2 s. */
  readonly close: () => Promise<void>;
};

const closeDeadlineMs = 2000;

/**
 * Starts sending spans by OTLP over HTTP. Every request is kept unless its caller's `traceparent` says not to; a span
 * that cannot be sent is dropped.
 *
 * @param url - the collector's base
 * @param service - its name, as OTEL_SERVICE_NAME has it
 */
export function startTraces(url: string, service: string, version: string): Traces {
  const exporter = new OTLPTraceExporter({ url: `${url.replace(/\/+$/, "")}/v1/traces` });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": service, "service.version": version }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer("keyhole", version);
  return {
    trace: ({ route, startedAtMs, stages, traceparent }, status, code, endedAtMs) => {
      const span = tracer.startSpan(
        route === "none" ? "GET" : `GET ${route}`,
        {
          kind: SpanKind.SERVER,
          startTime: epochMs(startedAtMs),
          attributes: {
            "http.request.method": "GET",
            "http.route": route,
            "http.response.status_code": status,
            ...(code !== undefined && { "error.type": code }),
          },
        },
        parentOf(traceparent),
      );
      if (stages !== undefined && span.isRecording()) {
        const within = trace.setSpan(ROOT_CONTEXT, span);
        for (const [name, from, to] of spansOf(stages)) {
          if (to > 0) tracer.startSpan(name, { startTime: epochMs(from) }, within).end(epochMs(to));
        }
      }
      return ended(span, status, endedAtMs);
    },
    close: async () => {
      await Promise.race([provider.shutdown().catch(() => {}), Bun.sleep(closeDeadlineMs)]);
    },
  };
}

function spansOf(stages: Stages): (readonly [name: string, fromMs: number, toMs: number])[] {
  return [
    ["look-up", stages.lookUpFromMs, stages.lookUpToMs],
    ["read", stages.readFromMs, stages.readToMs],
    ["open", stages.readToMs, stages.openToMs],
    ["audit", stages.auditFromMs, stages.auditToMs],
  ];
}

function ended(span: Span, status: number, endedAtMs: number): string {
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(epochMs(endedAtMs));
  return span.spanContext().traceId;
}

/** @see https://www.w3.org/TR/trace-context/#traceparent-header */
function parentOf(traceparent: string | null) {
  const [, traceId, spanId, flags] =
    /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? "") ?? [];
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags ?? "0", 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

function epochMs(monotonicMs: number): number {
  return performance.timeOrigin + monotonicMs;
}
