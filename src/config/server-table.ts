import { availableParallelism } from 'node:os'
import { readSecret } from './secret-file.ts'
import { defineDerived, defineFixed, defineOpen, none } from './setting-row.ts'
import * as types from './setting-types.ts'

const MAX_DEFAULT_WORKERS = 8

function readPort(url: string): number | undefined {
  const { port } = new URL(url)
  return port === '' ? undefined : Number(port)
}

export const serverTable = {
  issuerUrl: defineFixed({
    name: 'smart.server.issuer-url',
    env: 'SMART_ISSUER_URL',
    type: types.origin,
    initial: 'http://localhost:9000',
    about: 'URL of the auth server, and the issuer (`iss`) of its tokens.',
  }),
  fhirBaseUrl: defineFixed({
    name: 'smart.server.fhir-base-url',
    env: 'SMART_FHIR_BASE_URL',
    type: types.baseAddress,
    initial: 'http://localhost:8080/fhir',
    about: 'FHIR base URL: the `iss` of a launch and the audience of access tokens.',
  }),
  appUrl: defineFixed({
    name: 'smart.server.app-url',
    env: 'SMART_APP_URL',
    type: types.origin,
    initial: 'http://localhost:8081',
    about: 'URL of the app server.',
  }),
  dataDir: defineFixed({
    name: 'smart.server.data-dir',
    env: 'SMART_DATA_DIR',
    type: types.path,
    initial: './data',
    about: 'Folder of the embedded databases and of the generated secret.',
  }),
  secret: defineDerived({
    name: 'smart.server.secret',
    env: 'SMART_SECRET',
    type: types.secretText,
    otherwise: 'on loopback generated in the data folder; off loopback required',
    about: 'Encrypts signing keys and session tokens in the database.',
    secret: true,
    derive: ({ onLoopback, dataDir }) => (onLoopback ? readSecret(dataDir) : undefined),
  }),
  logLevel: defineFixed({
    name: 'smart.server.log-level',
    env: 'SMART_LOG_LEVEL',
    type: types.logLevel,
    initial: 'warn',
    about: 'Lowest level that is logged, as JSON lines on standard output. `info` logs every request.',
  }),
  'metrics.isOpen': defineFixed({
    name: 'smart.server.open-metrics',
    env: 'SMART_OPEN_METRICS',
    type: types.flag,
    initial: 'false',
    about: 'Serves `GET /metrics` to other hosts too, not only to local requests.',
  }),
  'metrics.port': defineOpen({
    name: 'smart.server.metrics-port',
    env: 'SMART_METRICS_PORT',
    type: types.port,
    otherwise: 'none: each server has `/metrics` on its own port',
    about:
      'Port for `GET /metrics` of all servers of this host, without TLS, for everyone who reaches it. The ports of the servers then have no `/metrics`.',
  }),
  'metrics.bind': defineDerived({
    name: 'smart.server.metrics-bind',
    env: 'SMART_METRICS_BIND',
    type: types.hosts,
    otherwise: 'as `bind`',
    about: 'Addresses on which `metrics-port` listens.',
    derive: ({ bind }) => bind,
  }),
}

export const networkTable = {
  workers: defineDerived({
    name: 'smart.server.workers',
    env: 'SMART_WORKERS',
    type: types.wholeNumber(1, 64),
    otherwise: '`1` on loopback, otherwise the number of processor cores, at most `8`',
    about:
      'Number of processes in which the servers run, behind the same ports. With more than one, a supervisor starts them, and restarts a process that ends.',
    derive: ({ onLoopback }) => (onLoopback ? 1 : Math.min(availableParallelism(), MAX_DEFAULT_WORKERS)),
  }),
  authPort: defineDerived({
    name: 'smart.server.auth-port',
    env: 'SMART_AUTH_PORT',
    type: types.port,
    otherwise: 'the port in the issuer URL, otherwise `9000`',
    about: 'Port of the auth server.',
    derive: ({ issuerUrl }) => readPort(issuerUrl) ?? 9000,
  }),
  fhirPort: defineDerived({
    name: 'smart.server.fhir-port',
    env: 'SMART_FHIR_PORT',
    type: types.port,
    otherwise: 'the port in the FHIR base URL, otherwise `8080`',
    about: 'Port of the FHIR server.',
    derive: ({ fhirBaseUrl }) => readPort(fhirBaseUrl) ?? 8080,
  }),
  appPort: defineDerived({
    name: 'smart.server.app-port',
    env: 'SMART_APP_PORT',
    type: types.port,
    otherwise: 'the port in the app URL, otherwise `8081`',
    about: 'Port of the app server.',
    derive: ({ appUrl }) => readPort(appUrl) ?? 8081,
  }),
  bind: defineDerived({
    name: 'smart.server.bind',
    env: 'SMART_BIND',
    type: types.bindAddresses,
    otherwise: '`127.0.0.1,::1` if the three URLs are loopback, otherwise `0.0.0.0`',
    about: 'IP addresses on which the servers listen.',
    derive: ({ bind }) => bind,
  }),
  allowedHosts: defineDerived({
    name: 'smart.server.allowed-hosts',
    env: 'SMART_ALLOWED_HOSTS',
    type: types.hosts,
    otherwise: 'none',
    about:
      'Further host names that `Host` may contain if the servers listen on loopback only. Loopback names and the hosts of the three URLs are always accepted; others get 421.',
    derive: none,
  }),
  trustProxy: defineOpen({
    name: 'smart.server.trust-proxy',
    env: 'SMART_TRUST_PROXY',
    type: types.proxies,
    otherwise: 'none',
    about: 'Proxies whose `X-Forwarded-For` the servers trust, for the log and the limits of failed logins.',
  }),
  tlsCert: defineOpen({
    name: 'smart.server.tls-cert',
    env: 'SMART_TLS_CERT',
    type: types.path,
    otherwise: 'none',
    about: 'PEM file with the certificate chain of the servers; requires `tls-key`.',
  }),
  tlsKey: defineOpen({
    name: 'smart.server.tls-key',
    env: 'SMART_TLS_KEY',
    type: types.path,
    otherwise: 'none',
    about: 'PEM file with the private key of `tls-cert`.',
  }),
  allowHttp: defineFixed({
    name: 'smart.server.allow-http',
    env: 'SMART_ALLOW_HTTP',
    type: types.flag,
    initial: 'false',
    about: 'Allows `http:` URLs off loopback. Tokens and patient records then cross the network unencrypted.',
  }),
  drainDelaySeconds: defineDerived({
    name: 'smart.server.drain-delay-seconds',
    env: 'SMART_DRAIN_DELAY_SECONDS',
    type: types.wholeNumber(0, 6),
    otherwise: '`0` on loopback, otherwise `3`',
    about:
      'How long a stopping server keeps serving while `/readyz` answers `draining`, before it closes its sockets. Set it longer than the proxy takes to notice.',
    derive: ({ onLoopback }) => (onLoopback ? 0 : 3),
  }),
}
