import { defineFixed, open } from './setting-row.ts'
import * as types from './setting-types.ts'

/** The settings of all servers: URLs, data, log. */
export const serverTable = {
  issuerUrl: defineFixed({
    name: 'smart.server.issuer-url',
    env: 'SMART_ISSUER_URL',
    type: types.origin,
    initial: 'http://localhost:9000',
    about: 'URL of the auth server, and the issuer (`iss`) of its tokens.',
    of: settings => settings.issuerUrl,
  }),
  fhirBaseUrl: defineFixed({
    name: 'smart.server.fhir-base-url',
    env: 'SMART_FHIR_BASE_URL',
    type: types.baseAddress,
    initial: 'http://localhost:8080/fhir',
    about: 'FHIR base URL: the `iss` of a launch and the audience of access tokens.',
    of: settings => settings.fhirBaseUrl,
  }),
  appUrl: defineFixed({
    name: 'smart.server.app-url',
    env: 'SMART_APP_URL',
    type: types.origin,
    initial: 'http://localhost:8081',
    about: 'URL of the app server.',
    of: settings => settings.appUrl,
  }),
  dataDir: defineFixed({
    name: 'smart.server.data-dir',
    env: 'SMART_DATA_DIR',
    type: types.path,
    initial: './data',
    about: 'Folder of the embedded databases and of the generated secret.',
    of: settings => settings.dataDir,
  }),
  secret: open({
    name: 'smart.server.secret',
    env: 'SMART_SECRET',
    type: types.secretText,
    otherwise: 'on loopback generated in the data folder; off loopback required',
    about: 'Encrypts signing keys and session tokens in the database.',
    secret: true,
    of: settings => settings.secret,
  }),
  logLevel: defineFixed({
    name: 'smart.server.log-level',
    env: 'SMART_LOG_LEVEL',
    type: types.logLevel,
    initial: 'warn',
    about: 'Lowest level that is logged, as JSON lines on standard output. `info` logs every request.',
    of: settings => settings.logLevel,
  }),
  openMetrics: defineFixed({
    name: 'smart.server.open-metrics',
    env: 'SMART_OPEN_METRICS',
    type: types.flag,
    initial: 'false',
    about: 'Serves `GET /metrics` to other hosts too, not only to local requests.',
    of: settings => settings.openMetrics,
  }),
}
