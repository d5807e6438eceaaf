import { defineFixed, defineOpen } from './setting-row.ts'
import * as types from './setting-types.ts'

export const auditTable = {
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
