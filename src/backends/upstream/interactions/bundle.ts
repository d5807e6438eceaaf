import { type Entry, fail, isProblem, parseEntries, resourceTypes } from '../../../fhir/index.ts'
import type { Access } from '../../../smart/index.ts'
import { batch } from '../bundle/batch.ts'
import { entryCall } from '../bundle/entry-call.ts'
import { transaction } from '../bundle/transaction.ts'
import type { Call, Handler } from '../call.ts'
import { isKeptElsewhere } from '../judge/kept-elsewhere.ts'
import { seesAll } from '../judge/sees-all.ts'
import type { Problem } from '../problem.ts'
import { passThrough } from '../upstream/pass-through.ts'
import { sending } from '../upstream/request-of.ts'
import { hasCondition } from './pass-write.ts'

/** `POST [base]`: a batch or a transaction. */
export const bundle: Handler<'bundle'> = async (context, call) => {
  const parsed = parseEntries(call.body, context.baseUrl)
  if (isProblem(parsed)) return parsed
  const calls = parsed.entries.map(entry => callOf(call, entry))
  if (doesAll(call.access) && calls.every(it => isPlain(it, context.baseUrl)))
    return passThrough(context, call, sending(call, 'POST', '', call.body, context.addresses))
  if (parsed.type === 'batch') return batch(context, call, calls)
  return transaction(context, call, parsed.entries, calls)
}

function callOf(bundle: Call, entry: Entry): Call | Problem {
  const call = entryCall(bundle, entry)
  if (!isProblem(call) && isKeptElsewhere(call.interaction))
    return fail({ problem: 'kept-elsewhere', type: 'AuditEvent' })
  return call
}

const WHOLE: readonly string[] = [
  'search-system',
  'history-system',
  'operation',
  'capabilities',
  'smart-configuration',
]

/**
 * Whether the upstream can be left alone with an entry. Of several types it may bring what is never taken from the
 * upstream; the matches of a condition are compared with it.
 */
function isPlain(call: Call | Problem, baseUrl: string): boolean {
  return (
    !isProblem(call) &&
    !WHOLE.includes(call.interaction.kind) &&
    !hasCondition(call.interaction, baseUrl) &&
    !(call.interaction.kind === 'search-compartment' && call.interaction.type === '*')
  )
}

function doesAll(access: Access): boolean {
  const isAll = (permission: 'c' | 'u' | 'd') =>
    resourceTypes.every(type => access.filterFor(type, permission) === 'everything')
  return seesAll(access) && isAll('c') && isAll('u') && isAll('d')
}
