import type { EntryInteraction } from '../../fhir/index.ts'
import type { Answer } from './answer.ts'
import type { Call, Context } from './call.ts'
import { capabilities, smartConfiguration } from './interactions/conformance.ts'
import { create } from './interactions/create.ts'
import { remove, removeConditional } from './interactions/delete.ts'
import { history } from './interactions/history.ts'
import { operation } from './interactions/operation.ts'
import { patch, patchConditional } from './interactions/patch.ts'
import { read, vread } from './interactions/read.ts'
import { search } from './interactions/search.ts'
import { update, updateConditional } from './interactions/update.ts'
import type { Problem } from './problem.ts'

type Kind = EntryInteraction['kind']

/** The routes of the server: FHIR's interactions but for Bundles, and who does each. */
const HANDLERS: {
  readonly [K in Kind]: (
    context: Context,
    call: Call<Extract<EntryInteraction, { readonly kind: K }>>,
  ) => Answer | Problem
} = {
  capabilities,
  'smart-configuration': smartConfiguration,
  read,
  vread,
  'history-instance': history,
  'history-type': history,
  'history-system': history,
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
  operation,
}

/** Answers an interaction that has been allowed. Nothing is answered before it is on the disk. */
export function handle<K extends Kind>(
  context: Context,
  call: Call<Extract<EntryInteraction, { readonly kind: K }>>,
): Answer | Problem {
  return HANDLERS[call.interaction.kind as K](context, call)
}
