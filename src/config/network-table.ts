import { defineFixed, open } from './setting-row.ts'
import * as types from './setting-types.ts'

/** The settings of ports, addresses, proxies and TLS, which all servers share. */
export const networkTable = {
  authPort: open({
    name: 'smart.server.auth-port',
    env: 'SMART_AUTH_PORT',
    type: types.port,
    otherwise: 'the port in the issuer URL, otherwise `9000`',
    about: 'Port of the auth server.',
    of: settings => settings.authPort,
  }),
  fhirPort: open({
    name: 'smart.server.fhir-port',
    env: 'SMART_FHIR_PORT',
    type: types.port,
    otherwise: 'the port in the FHIR base URL, otherwise `8080`',
    about: 'Port of the FHIR server.',
    of: settings => settings.fhirPort,
  }),
  appPort: open({
    name: 'smart.server.app-port',
    env: 'SMART_APP_PORT',
    type: types.port,
    otherwise: 'the port in the app URL, otherwise `8081`',
    about: 'Port of the app server.',
    of: settings => settings.appPort,
  }),
  bind: open({
    name: 'smart.server.bind',
    env: 'SMART_BIND',
    type: types.bindAddresses,
    otherwise: '`127.0.0.1,::1` if the three URLs are loopback, otherwise `0.0.0.0`',
    about: 'IP addresses on which the servers listen.',
    of: settings => settings.bind,
  }),
  allowedHosts: open({
    name: 'smart.server.allowed-hosts',
    env: 'SMART_ALLOWED_HOSTS',
    type: types.hosts,
    otherwise: 'none',
    about:
      'Further host names that `Host` may contain if the servers listen on loopback only. Loopback names and the hosts of the three URLs are always accepted; others get 421.',
    of: settings => settings.allowedHosts,
  }),
  trustProxy: open({
    name: 'smart.server.trust-proxy',
    env: 'SMART_TRUST_PROXY',
    type: types.proxies,
    otherwise: 'none',
    about: 'Proxies whose `X-Forwarded-For` the servers trust, for the log and the limits of failed logins.',
    of: settings => settings.trustProxy,
  }),
  tlsCert: open({
    name: 'smart.server.tls-cert',
    env: 'SMART_TLS_CERT',
    type: types.path,
    otherwise: 'none',
    about: 'PEM file with the certificate chain of the servers; requires `tls-key`.',
    of: settings => settings.tlsCert,
  }),
  tlsKey: open({
    name: 'smart.server.tls-key',
    env: 'SMART_TLS_KEY',
    type: types.path,
    otherwise: 'none',
    about: 'PEM file with the private key of `tls-cert`.',
    of: settings => settings.tlsKey,
  }),
  allowHttp: defineFixed({
    name: 'smart.server.allow-http',
    env: 'SMART_ALLOW_HTTP',
    type: types.flag,
    initial: 'false',
    about: 'Allows `http:` URLs off loopback. Tokens and patient records then cross the network unencrypted.',
    of: settings => settings.allowHttp,
  }),
  drainDelaySeconds: open({
    name: 'smart.server.drain-delay-seconds',
    env: 'SMART_DRAIN_DELAY_SECONDS',
    type: types.wholeNumber(0, 6),
    otherwise: '`0` on loopback, otherwise `3`',
    about:
      'How long a stopping server keeps serving while `/readyz` answers `draining`, before it closes its sockets. Set it longer than the proxy takes to notice.',
    of: settings => settings.drainDelaySeconds,
  }),
}
