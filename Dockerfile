# One program, without root, meant for a read-only root file system. Bun, which is in it, has a shell of its own.
FROM oven/bun:1.4.5-debian AS build
WORKDIR /keyhole
COPY package.json bun.lock bunfig.toml ./
COPY src/store/postgres@3.4.9.patch src/store/
RUN bun install --frozen-lockfile --production --ignore-scripts
COPY tsconfig.json ./
COPY drizzle drizzle
COPY src src
RUN bun run --silent compile && mkdir -m 0700 data

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /keyhole/dist/keyhole /usr/bin/keyhole
COPY --from=build --chown=65532:65532 /keyhole/data /data
ENV HOST=0.0.0.0 PORT=4100 KEYHOLE_DATA=/data
VOLUME /data
EXPOSE 4100
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=3s CMD ["/usr/bin/keyhole", "health"]
ENTRYPOINT ["/usr/bin/keyhole"]
CMD ["serve"]
