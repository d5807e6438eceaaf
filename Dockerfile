# The image has no base. It holds Node (in the version of the lock file), the libraries that Node links to, and Sallyport, and
# neither a shell nor a package manager. The build needs a Debian with Node 20 or later, npm and libatomic1.
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
RUN PATH="$PWD/node_modules/.bin:$PATH" node_modules/.bin/node scripts/build.ts /image/opt --image
RUN mkdir -p /image/usr/bin /image/etc /image/tmp /data && \
    cp -L node_modules/.bin/node /image/usr/bin/node && \
    ldd /image/usr/bin/node | grep -o '/[^ ]*' | xargs -I{} cp -L --parents {} /image && \
    echo 'sallyport:x:10001:10001::/var/lib/sallyport:/sbin/nologin' > /image/etc/passwd && \
    chmod 1777 /image/tmp
# The bill of materials of the image, in the image.
RUN PATH="$PWD/node_modules/.bin:$PATH" node_modules/.bin/node scripts/release/sbom.ts --image /image > /tmp/image.cdx.json && \
    mv /tmp/image.cdx.json /image/opt/sallyport/
# The packages that the servers need, in the versions of the lock file.
RUN npm ci --omit=dev --ignore-scripts && rm -rf node_modules/node-linux-* node_modules/.bin && \
    mv node_modules /image/opt/sallyport/

FROM scratch
COPY --from=build /image /
COPY --from=build --chown=10001:10001 /data /var/lib/sallyport
ENV NODE_ENV=production MALLOC_ARENA_MAX=2 SMART_DATA_DIR=/var/lib/sallyport
USER 10001:10001
WORKDIR /var/lib/sallyport
VOLUME /var/lib/sallyport
EXPOSE 8080 8081 9000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/usr/bin/node", "/opt/sallyport/src/cli/main.js", "health"]
ENTRYPOINT ["/usr/bin/node", "--max-semi-space-size=8", "/opt/sallyport/src/cli/main.js"]
CMD ["start"]
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sallyport" \
      org.opencontainers.image.description="SMART-on-FHIR launch and authorization for any FHIR R4 server" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
