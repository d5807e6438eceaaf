import { fixed, open } from './setting-row.ts'
import * as types from './setting-types.ts'

/** The settings of the audit trail (contract 2, 5.8) and of the page that shows it. */
export const auditTable = {
  audit: fixed({
    name: 'smart.server.audit',
    env: 'SMART_AUDIT',
    type: types.flag,
    initial: 'true',
    about: 'Whether what happens is kept in the audit trail. Switch it off for measurements only.',
    of: settings => settings.audit.kept,
  }),
  auditFailure: fixed({
    name: 'smart.server.audit-failure',
    env: 'SMART_AUDIT_FAILURE',
    type: types.oneOf('refuse', 'allow'),
    initial: 'refuse',
    about:
      'What becomes of requests while the database cannot take their audit records: `refuse` answers 503, `allow` lets them pass and logs the records.',
    of: settings => settings.audit.failure,
  }),
  auditDays: fixed({
    name: 'smart.server.audit-days',
    env: 'SMART_AUDIT_DAYS',
    type: types.wholeNumber(1, 36_500),
    initial: '1095',
    about: 'How many days audit records are kept. The default is three years.',
    of: settings => settings.audit.days,
  }),
  activityClinicians: open({
    name: 'smart.server.activity-clinicians',
    env: 'SMART_ACTIVITY_CLINICIANS',
    type: types.usernames,
    otherwise: 'on loopback every clinician, else none',
    about: 'Usernames of the clinicians who may see the page `/activity`.',
    of: settings => settings.audit.activityClinicians,
  }),
}
