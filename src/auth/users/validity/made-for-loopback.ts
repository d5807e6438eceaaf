import type { Store } from '../../../store/index.ts'
import type { AccessRules } from './rule.ts'

/** Names that a list has at most. */
const NAMED = 10

/**
 * What a server with a public URL does not accept, because it was made for loopback (ENDS-2), as one line. Undefined if there
 * is nothing, or on loopback.
 */
export async function describeMadeForLoopback(
  { db }: Pick<Store, 'db'>,
  { onLoopback }: Pick<AccessRules, 'onLoopback'>,
): Promise<string | undefined> {
  if (onLoopback) return undefined
  const accounts = await db
    .selectFrom('clinician')
    .select('username as name')
    .where('for_loopback', '=', true)
    .where('disabled', '=', false)
    .orderBy('username')
    .execute()
  const clients = await db
    .selectFrom('client')
    .select('client_id as name')
    .where('for_loopback', '=', true)
    .where('disabled', '=', false)
    .orderBy('client_id')
    .execute()
  const parts = [formatNames('account', accounts), formatNames('app', clients)].filter(text => text !== '')
  return parts.length === 0
    ? undefined
    : `Created on loopback, and therefore disabled at a public URL: ${parts.join('; ')}. To keep an account, run clinician set-password; to keep an app, run client approve.`
}

function formatNames(noun: string, rows: readonly { readonly name: string }[]): string {
  if (rows.length === 0) return ''
  const names = rows.slice(0, NAMED).map(({ name }) => name)
  const others = rows.length > NAMED ? ` and ${rows.length - NAMED} others` : ''
  return `${noun}${rows.length === 1 ? '' : 's'} ${names.join(', ')}${others}`
}
