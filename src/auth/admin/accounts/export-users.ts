import { setImmediate as yieldTurn } from 'node:timers/promises'
import { formatTime } from '../../../endpoint/index.ts'
import { formatCsvRow } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { type Admin, type AdminFailure, type Operation, recordAction } from '../base/action.ts'
import { listUsers, type UserDescription, type UserFilter } from './users.ts'

/** A list of the users of this server says who may be attacked, so it is recorded. */
export const EXPORT_USERS: Operation = { name: 'users export', signIn: 'never asks', isForAuditors: true }

/** The members of the administration API, as columns. */
const COLUMNS: Readonly<Record<string, (user: UserDescription) => string | number | boolean | undefined>> = {
  username: user => user.username,
  display_name: user => user.displayName,
  kind: user => user.kind,
  fhir_user: user => user.fhirUser,
  records: user => user.records,
  related_persons: user => user.relatedPersons.join(' '),
  admin: user => user.admin,
  auditor: user => user.auditor,
  admin_providers: user => user.adminProviders.join(' '),
  disabled: user => user.disabled,
  locked_at: user => formatOptional(user.lockedAt),
  created_at: user => formatOptional(user.createdAt),
  last_sign_in_at: user => formatOptional(user.signedInAt),
  has_password: user => user.hasPassword,
  second_factors: user => user.secondFactors,
  sign_ins: user => user.signIns,
  links: user => user.links.map(({ issuer, subject }) => `${issuer} ${subject}`).join('; '),
  id: user => user.id,
}

function formatOptional(at: number | undefined): string | undefined {
  return at === undefined ? undefined : formatTime(at)
}

/** Exports users by username as CSV, in parts, and records the export. */
export async function exportUsers(
  admin: Admin,
  filter: Omit<UserFilter, 'after' | 'limit'>,
): Promise<AsyncGenerator<string> | AdminFailure> {
  const refused = await recordAction(admin, { operation: EXPORT_USERS, after: { ...filter } })
  return refused ?? writeUsers(admin, filter)
}

async function* writeUsers(
  admin: Admin,
  filter: Omit<UserFilter, 'after' | 'limit'>,
): AsyncGenerator<string> {
  yield formatCsvRow(Object.keys(COLUMNS))
  let after: string | undefined
  do {
    const page = await listUsers(admin, { ...filter, after, limit: LIMITS.adminPage })
    yield page.items
      .map(user => formatCsvRow(Object.values(COLUMNS).map(readColumn => readColumn(user))))
      .join('')
    after = page.next
    await yieldTurn()
  } while (after !== undefined)
}
