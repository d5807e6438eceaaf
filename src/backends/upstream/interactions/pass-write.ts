import { exactText, type Interaction, type Params, parseSearch } from '../../../fhir/index.ts'
import type { Permission } from '../../../smart/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, InteractionOf } from '../call.ts'
import { seesAll } from '../judge/sees-all.ts'
import type { Problem } from '../problem.ts'
import type { UpstreamRequest } from '../upstream/exchange.ts'
import { passThrough } from '../upstream/pass-through.ts'
import { headersFor, pathOf, queryOf, STRICT } from '../upstream/request-of.ts'

type Write = InteractionOf<
  'create' | 'update' | 'update-conditional' | 'patch' | 'patch-conditional' | 'delete' | 'delete-conditional'
>

const METHODS = {
  create: 'POST',
  update: 'PUT',
  'update-conditional': 'PUT',
  patch: 'PATCH',
  'patch-conditional': 'PATCH',
  delete: 'DELETE',
  'delete-conditional': 'DELETE',
} as const satisfies Record<Write['kind'], UpstreamRequest['method']>

/**
 * Whether a write may go by as it is: the caller may do it to all of a type, and see whatever is answered. What is
 * recorded is read before it is changed, so that it is filed under whose it was; a new resource was nobody's.
 */
export function isPassed(
  { isRecorded, baseUrl }: Context,
  call: Call<Write>,
  permission: Permission,
): boolean {
  if (isRecorded && call.interaction.kind !== 'create') return false
  if (hasCondition(call.interaction, baseUrl)) return false
  return seesAll(call.access) && call.access.filterFor(call.interaction.type, permission) === 'everything'
}

/** Whether a write has a condition whose matches can be compared with it: then the upstream does not decide alone. */
export function hasCondition(interaction: Interaction, baseUrl: string): boolean {
  const condition = conditionOf(interaction)
  if (!condition) return false
  const { type, params } = condition
  const errors = params.flatMap(([name, value]) => {
    const clause = parseSearch(type, name, value, baseUrl)
    return clause.kind === 'error' ? [clause.reason] : []
  })
  // A condition that exceeds a limit is refused, not left to the upstream.
  return errors.length === 0 || errors.includes('too-costly')
}

function conditionOf(
  interaction: Interaction,
): { readonly type: string; readonly params: Params } | undefined {
  switch (interaction.kind) {
    case 'create':
      return interaction.ifNoneExist && { type: interaction.type, params: interaction.ifNoneExist }
    case 'update-conditional':
    case 'patch-conditional':
    case 'delete-conditional':
      return interaction
    default:
      return undefined
  }
}

export function passWrite(context: Context, call: Call<Write>): Promise<Answer | Problem> {
  const { interaction, body } = call
  const query = 'params' in interaction ? queryOf(interaction.params, context.addresses) : ''
  const path = pathOf(interaction)
  return passThrough(context, call, {
    method: METHODS[interaction.kind],
    path: query === '' ? path : `${path}?${query}`,
    headers: writeHeaders(context, call),
    ...(body !== undefined && { body: context.addresses.inward(exactText(body)) }),
  })
}

function writeHeaders(context: Context, call: Call<Write>): UpstreamRequest['headers'] {
  const { interaction, preconditions, preferences, body } = call
  const isJsonPatch = Array.isArray(body)
  const condition = interaction.kind === 'create' ? interaction.ifNoneExist : undefined
  return {
    ...headersFor(call),
    prefer: `return=${preferences.answer}, ${STRICT}`,
    ...(body !== undefined && {
      'content-type': isJsonPatch ? 'application/json-patch+json' : 'application/fhir+json; charset=utf-8',
    }),
    ...(preconditions.ifMatch !== undefined && { 'if-match': preconditions.ifMatch }),
    ...(preconditions.ifNoneMatch !== undefined && { 'if-none-match': preconditions.ifNoneMatch }),
    ...(condition && { 'if-none-exist': queryOf(condition, context.addresses) }),
  }
}
