import { resolve } from 'node:path'
import { agentsTable } from './agents-table.ts'
import { appTable, authTable } from './auth-table.ts'
import { brandTable } from './brand-table.ts'
import { cdsServices } from './cds-services.ts'
import { fhirTable, upstreamTable } from './fhir-table.ts'
import { loginTable } from './login-table.ts'
import { networkTable, serverTable } from './server-table.ts'
import { defineDerived, defineFixed, defineOpen, none, type SettingRow } from './setting-row.ts'
import * as types from './setting-types.ts'

const cdsTable = {
  'cds.services': defineDerived({
    name: 'smart.cds.services',
    type: cdsServices,
    otherwise: 'none',
    replaces: ['smart.cds.url', 'smart.cds.service', 'smart.cds.name', 'smart.cds.client-id'],
    about:
      'CDS services that the portal calls when a clinician picks a patient, as a [list](how-to/cds-hooks.md). A variable has it as JSON.',
    derive: none,
  }),
}

const databaseTable = {
  databaseUrl: defineDerived({
    name: 'smart.server.database-url',
    env: 'SMART_DATABASE_URL',
    type: types.databaseUrl,
    otherwise: '`sqlite:<data folder>/sallyport.db`',
    about: 'Database of clinicians, clients, keys, tokens, sessions and audit records.',
    hasPassword: true,
    derive: ({ dataDir }) => `sqlite:${resolve(dataDir, 'sallyport.db')}`,
  }),
  'database.poolSize': defineFixed({
    name: 'smart.server.database-pool-size',
    env: 'SMART_DATABASE_POOL_SIZE',
    type: types.wholeNumber(1, 1000),
    initial: '10',
    about:
      'PostgreSQL: maximum number of connections of each process. One more connection tests whether the database accepts writes.',
  }),
  'database.connectTimeoutSeconds': defineFixed({
    name: 'smart.server.database-connect-timeout-seconds',
    env: 'SMART_DATABASE_CONNECT_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 60),
    initial: '5',
    about: 'PostgreSQL: how long a request waits for a new or free connection before it gets 503.',
  }),
  'database.statementTimeoutSeconds': defineFixed({
    name: 'smart.server.database-statement-timeout-seconds',
    env: 'SMART_DATABASE_STATEMENT_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 300),
    initial: '15',
    about: 'PostgreSQL: how long a statement may take before its request gets 503.',
  }),
}

const auditTable = {
  'audit.kept': defineFixed({
    name: 'smart.server.audit',
    env: 'SMART_AUDIT',
    type: types.flag,
    initial: 'true',
    about: 'Writes audit records. Turn it off only for measurements.',
  }),
  'audit.failure': defineFixed({
    name: 'smart.server.audit-failure',
    env: 'SMART_AUDIT_FAILURE',
    type: types.oneOf('refuse', 'allow'),
    initial: 'refuse',
    about:
      'Handling of requests whose audit records the database cannot store: `refuse` answers 503; `allow` processes them and logs the records.',
  }),
  'audit.days': defineFixed({
    name: 'smart.server.audit-days',
    env: 'SMART_AUDIT_DAYS',
    type: types.wholeNumber(1, 36_500),
    initial: '1095',
    about: 'How many days audit records are kept. The default is three years.',
  }),
  'auditFeeds.fhirUrl': defineOpen({
    name: 'smart.server.audit-feed-url',
    env: 'SMART_AUDIT_FEED_URL',
    type: types.baseAddress,
    otherwise: 'none',
    about:
      'Base URL of a FHIR server that receives every audit record as an AuditEvent, in transaction Bundles.',
  }),
  'auditFeeds.token': defineOpen({
    name: 'smart.server.audit-feed-token',
    env: 'SMART_AUDIT_FEED_TOKEN',
    type: types.headerText,
    otherwise: 'none',
    about: 'Bearer token for `audit-feed-url`.',
    secret: true,
  }),
  'auditFeeds.syslogUrl': defineOpen({
    name: 'smart.server.audit-syslog-url',
    env: 'SMART_AUDIT_SYSLOG_URL',
    type: types.syslogUrl,
    otherwise: 'none',
    about: 'Syslog receiver (RFC 5424 over TLS) that receives every audit record as an AuditEvent in JSON.',
  }),
  'auditFeeds.tlsCa': defineOpen({
    name: 'smart.server.audit-tls-ca',
    env: 'SMART_AUDIT_TLS_CA',
    type: types.path,
    otherwise: 'the certificate authorities of Node',
    about: 'PEM file with the certificate authorities of `audit-feed-url` and `audit-syslog-url`.',
  }),
  'auditFeeds.tlsCert': defineOpen({
    name: 'smart.server.audit-tls-cert',
    env: 'SMART_AUDIT_TLS_CERT',
    type: types.path,
    otherwise: 'none',
    about: 'PEM file with the client certificate for `audit-feed-url` and `audit-syslog-url` (mTLS).',
  }),
  'auditFeeds.tlsKey': defineOpen({
    name: 'smart.server.audit-tls-key',
    env: 'SMART_AUDIT_TLS_KEY',
    type: types.path,
    otherwise: 'none',
    about: 'PEM file with the key of `audit-tls-cert`.',
  }),
}

export const settingsTable = {
  ...serverTable,
  ...networkTable,
  ...databaseTable,
  ...auditTable,
  ...authTable,
  ...brandTable,
  ...loginTable,
  ...cdsTable,
  ...agentsTable,
  ...fhirTable,
  ...upstreamTable,
  ...appTable,
}

export const settingGroups: Readonly<Record<string, Readonly<Record<string, SettingRow<unknown>>>>> = {
  'All servers': serverTable,
  'All servers: network and TLS': networkTable,
  'All servers: database': databaseTable,
  'All servers: audit trail': auditTable,
  'Auth server': authTable,
  'Auth server: your organization': brandTable,
  'Auth server: sign-in providers': loginTable,
  'Auth server: decision support': cdsTable,
  'Auth server and FHIR server: assistants': agentsTable,
  'FHIR server': fhirTable,
  'FHIR server: gateway': upstreamTable,
  'App server': appTable,
}

export const settingRows = Object.entries(settingsTable) as readonly [
  keyof typeof settingsTable,
  SettingRow<unknown>,
][]
