import { fail } from '../../fhir/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import type { Answer } from './answer.ts'
import type { Call, Context, InteractionOf, Kind } from './call.ts'
import { bundle } from './interactions/bundle.ts'
import { capabilities, smartConfiguration } from './interactions/conformance.ts'
import { create } from './interactions/create.ts'
import { remove, removeConditional } from './interactions/delete.ts'
import { historyOfInstance, historyOfSystem, historyOfType } from './interactions/history.ts'
import { operation } from './interactions/operation.ts'
import { patch, patchConditional } from './interactions/patch.ts'
import { read, vread } from './interactions/read.ts'
import { search } from './interactions/search.ts'
import { update, updateConditional } from './interactions/update.ts'
import { isKeptElsewhere } from './judge/kept-elsewhere.ts'
import type { Problem } from './problem.ts'
import { allowanceFor, onBehalfOf, withAllowance } from './upstream/allowance.ts'

/** FHIR's interactions, and who sees each through to the upstream. */
const HANDLERS: {
  readonly [K in Kind]: (context: Context, call: Call<InteractionOf<K>>) => Promise<Answer | Problem>
} = {
  capabilities,
  'smart-configuration': smartConfiguration,
  read,
  vread,
  'history-instance': historyOfInstance,
  'history-type': historyOfType,
  'history-system': historyOfSystem,
  'search-type': search,
  'search-system': search,
  'search-compartment': search,
  create,
  update,
  'update-conditional': updateConditional,
  patch,
  'patch-conditional': patchConditional,
  delete: remove,
  'delete-conditional': removeConditional,
  bundle,
  operation,
}

// They ask a few times, and come by the thousand.
const READS: ReadonlySet<Kind> = new Set(['read', 'vread'])

/**
 * Answers an interaction that has been allowed, within the access that it was allowed with. The upstream is not asked
 * without end for it, nor for the entries of a Bundle together.
 */
export function handle<K extends Kind>(
  context: Context,
  call: Call<InteractionOf<K>>,
): Promise<Answer | Problem> {
  const caller = { holder: grantFingerprint(call.admitted.grant), connection: call.connection }
  if (READS.has(call.interaction.kind))
    return perform({ ...context, upstream: onBehalfOf(context.upstream, caller) }, call)
  const upstream = withAllowance(context.upstream, allowanceFor(call.body), caller)
  return perform({ ...context, upstream, handle: perform }, call)
}

function perform<K extends Kind>(context: Context, call: Call<InteractionOf<K>>): Promise<Answer | Problem> {
  if (isKeptElsewhere(call.interaction))
    return Promise.resolve(fail({ problem: 'kept-elsewhere', type: 'AuditEvent' }))
  return HANDLERS[call.interaction.kind as K](context, call)
}
