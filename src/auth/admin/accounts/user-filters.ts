import { sql } from 'kysely'
import { Type } from 'typebox'
import { DAY_MS } from '../../../core/index.ts'
import { containsText } from '../../../store/index.ts'
import { isLocked } from '../../users/guesses.ts'
import { NO_PASSWORD } from '../../users/passwords.ts'
import { defineFlag, type Filters } from '../subject/filters.ts'

/** Wrong second factors of a day that are more than typing errors: somebody may know the password. */
export const MANY_WRONG_CODES = 5

/** An account that nobody signs in to for so long may not be needed. */
export const UNUSED_DAYS = 90

/** The last sign-in, or else the creation of the account, or else the time since which both are kept. */
const lastUse = sql<number>`coalesce(signed_in_at, created_at,
  (select applied_at from schema_migration where name = '0002-who'))`

/** The filters of lists of users, each with its condition for the table `clinician`. */
export const USER_FILTERS = {
  text: {
    schema: Type.String({ maxLength: 200 }),
    about: 'Part of the username or the name.',
    name: 'search',
    where: (text: string) => containsText(['username', 'display_name'], text),
  },
  disabled: defineFlag('Whether the user is disabled.', sql`disabled`),
  records: defineFlag('Whether the account opens patient records.', sql`(fhir_user_id <> '')`),
  has_password: defineFlag('Whether the account has a password.', sql`(password_hash <> ${NO_PASSWORD})`),
  second_factor: defineFlag(
    'Whether the user has a second factor on this server.',
    sql`exists (select 1 from factor where factor.clinician_id = clinician.id)`,
  ),
  locked: defineFlag('Whether the account is locked after too many wrong passwords.', isLocked),
  wrong_codes: defineFlag(
    `Whether more than ${MANY_WRONG_CODES} codes or passkeys were wrong in the last 24 hours.`,
    ({ clock }) => sql`(id in (select clinician_id from wrong_code where at > ${clock() - DAY_MS}
      group by clinician_id having count(*) > ${MANY_WRONG_CODES}))`,
  ),
  unused_days: {
    schema: Type.Integer({ minimum: 1, maximum: 36_500 }),
    about: 'Only users who have not signed in for this number of days.',
    // An account for loopback cannot be used elsewhere.
    where: (days: number, { clock, rules }) =>
      sql`(${lastUse} < ${clock() - days * DAY_MS} ${sql.raw(rules.onLoopback ? '' : 'and not for_loopback')})`,
  },
  signed_in: defineFlag('Whether a sign-in is known.', sql`(signed_in_at is not null)`),
  admin: {
    schema: Type.Boolean(),
    about: 'Whether the user is an administrator, also by a provider.',
    // A provider names administrators at their sign-in, which may have ended.
    where: (isWanted: boolean) =>
      isWanted ? sql`(admin or id in (select clinician_id from login where admin))` : sql`not admin`,
  },
  auditor: defineFlag('Whether the user is an auditor.', sql`(auditor and not admin)`),
} as const satisfies Filters
