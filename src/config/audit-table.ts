import { defineFixed } from './setting-row.ts'
import * as types from './setting-types.ts'

/** The settings of the audit trail. */
export const auditTable = {
  audit: defineFixed({
    name: 'smart.server.audit',
    env: 'SMART_AUDIT',
    type: types.flag,
    initial: 'true',
    about: 'Writes audit records. Turn it off only for measurements.',
    of: settings => settings.audit.kept,
  }),
  auditFailure: defineFixed({
    name: 'smart.server.audit-failure',
    env: 'SMART_AUDIT_FAILURE',
    type: types.oneOf('refuse', 'allow'),
    initial: 'refuse',
    about:
      'Handling of requests whose audit records the database cannot store: `refuse` answers 503; `allow` processes them and logs the records.',
    of: settings => settings.audit.failure,
  }),
  auditDays: defineFixed({
    name: 'smart.server.audit-days',
    env: 'SMART_AUDIT_DAYS',
    type: types.wholeNumber(1, 36_500),
    initial: '1095',
    about: 'How many days audit records are kept. The default is three years.',
    of: settings => settings.audit.days,
  }),
}
