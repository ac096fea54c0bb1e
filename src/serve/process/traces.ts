import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { atMost } from "../../core/deadline.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import { spansOf } from "../sets/stages.ts";

const closeDeadlineMs = 2000;

/**
 * Sends spans by OTLP over HTTP. Every request is traced unless the caller's `traceparent` says not to. A span that
 * cannot be sent is dropped.
 * @param url - the collector's base URL
 * @returns `trace` makes a span for an answered request and for each of its stages, which holds nothing that the caller
 *   sent, and returns the trace id. `close` sends the remaining spans, for at most 2 s
 */
export function startTraces(url: string, version: string) {
  // The exporter's own TLS would trust anybody.
  delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  const service = process.env["OTEL_SERVICE_NAME"] || "keyhole";
  const exporter = new OTLPTraceExporter({ url: `${url.replace(/\/+$/, "")}/v1/traces` });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": service, "service.version": version }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer("keyhole", version);
  return {
    trace: (({ route, startedAtMs, stages, traceparent }, status, code, endedAtMs) => {
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
          tracer.startSpan(name, { startTime: epochMs(from) }, within).end(epochMs(to));
        }
      }
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(epochMs(endedAtMs));
      return span.spanContext().traceId;
    }) satisfies ApiParts["trace"],
    close: () => atMost(closeDeadlineMs, provider.shutdown()).catch(() => {}),
  };
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
