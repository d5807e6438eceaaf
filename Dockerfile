# The image has no base. It holds Node (in the version of the lock file), the libraries that Node links to, and Sallyport, and
# neither a shell nor a package manager. scripts/image/root.ts makes its files, and test/image/ starts them as below. The build needs a Debian with Node 20 or later, npm and libatomic1.
ARG BUILD_IMAGE=docker.io/library/node:26-bookworm-slim

FROM ${BUILD_IMAGE} AS build
# The file of a certificate authority of your own, if one stands between the build and the registry of npm.
ARG NODE_EXTRA_CA_CERTS
# The file with your settings of npm, such as another registry.
ARG NPM_CONFIG_USERCONFIG
WORKDIR /build
COPY package.json package-lock.json ./
COPY scripts/link-node.mjs scripts/
RUN npm ci --ignore-scripts && node scripts/link-node.mjs
COPY . .
RUN PATH="$PWD/node_modules/.bin:$PATH" node scripts/image/root.ts /image && mkdir /data

FROM scratch
COPY --from=build /image /
COPY --from=build --chown=10001:10001 /data /var/lib/sallyport
ENV PATH=/usr/local/bin:/usr/bin NODE_ENV=production MALLOC_ARENA_MAX=2 SMART_DATA_DIR=/var/lib/sallyport
USER 10001:10001
WORKDIR /var/lib/sallyport
VOLUME /var/lib/sallyport
EXPOSE 8080 8081 9000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["sallyport", "health"]
ENTRYPOINT ["/usr/bin/sallyport"]
CMD ["start"]
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sallyport" \
      org.opencontainers.image.description="SMART-on-FHIR launch and authorization for any FHIR R4 server" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
