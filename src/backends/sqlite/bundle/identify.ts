import { type Entry, type EntryInteraction, fail } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { matchOf } from '../interactions/match.ts'
import { written } from '../interactions/written.ts'
import { isProblem, type Problem } from '../problem.ts'

/** An entry of a transaction that knows which resource it is about. */
export interface Step {
  /** Without conditions: they have been looked up. */
  readonly call: Call<EntryInteraction>
  readonly fullUrl: string | undefined
  /** `Type/id` of what is written. */
  readonly identity: string | undefined
  /** Where there is nothing left to do. */
  readonly answer?: Answer
}

/**
 * Gives each entry its resource, before anything is written: a new id for a create, the one match for a condition.
 * Two entries that write the same resource fail the transaction (R4 http.html#trules).
 */
export function identify(
  context: Context,
  calls: readonly Call<EntryInteraction>[],
  entries: readonly Entry[],
): readonly Step[] | Problem {
  const steps: Step[] = []
  const written = new Map<string, number>()
  const conditions = new Set<string>()
  for (const [at, call] of calls.entries()) {
    const step = stepOf(context, call, entries[at]?.fullUrl)
    if (isProblem(step)) return fail({ problem: 'entry-failed', entry: at, cause: step })
    const condition = conditionOf(call)
    if (
      (step.identity !== undefined && !step.answer && written.has(step.identity)) ||
      (condition !== undefined && conditions.has(condition))
    )
      return fail({
        problem: 'bad-bundle',
        text: 'Cannot process transaction: two entries write the same resource',
        entry: at,
      })
    if (step.identity !== undefined) written.set(step.identity, at)
    if (condition !== undefined) conditions.add(condition)
    steps.push(step)
  }
  return steps
}

function conditionOf({ interaction }: Call): string | undefined {
  return interaction.kind === 'create' && interaction.ifNoneExist
    ? `${interaction.type}?${JSON.stringify(interaction.ifNoneExist)}`
    : undefined
}

function stepOf(context: Context, call: Call<EntryInteraction>, fullUrl: string | undefined): Step | Problem {
  const { interaction } = call
  const { repository } = context
  switch (interaction.kind) {
    case 'create': {
      const { type, ifNoneExist } = interaction
      const match = ifNoneExist && matchOf(context, call, type, ifNoneExist)
      if (match && isProblem(match)) return match
      if (match)
        return { call, fullUrl, identity: `${type}/${match.id}`, answer: written(context, call, match, 200) }
      const newId = repository.newId()
      return {
        call: { ...call, interaction: { kind: 'create', type }, newId },
        fullUrl,
        identity: `${type}/${newId}`,
      }
    }
    case 'update':
    case 'patch':
    case 'delete':
      return { call, fullUrl, identity: `${interaction.type}/${interaction.id}` }
    case 'update-conditional':
    case 'patch-conditional':
    case 'delete-conditional':
      return conditionalStep(context, { ...call, interaction }, fullUrl)
    default:
      return { call, fullUrl, identity: undefined }
  }
}

type Conditional = Extract<Call['interaction'], { readonly kind: `${string}-conditional` }>

function conditionalStep(
  context: Context,
  call: Call<Conditional>,
  fullUrl: string | undefined,
): Step | Problem {
  const { kind, type, params } = call.interaction
  const match = matchOf(context, call, type, params)
  if (match && isProblem(match)) return match
  const identity = match && `${type}/${match.id}`
  switch (kind) {
    case 'delete-conditional':
      return match
        ? { call: { ...call, interaction: { kind: 'delete', type, id: match.id } }, fullUrl, identity }
        : { call, fullUrl, identity, answer: { status: 204 } }
    case 'patch-conditional':
      return match
        ? { call: { ...call, interaction: { kind: 'patch', type, id: match.id } }, fullUrl, identity }
        : fail({ problem: 'no-match', type })
    case 'update-conditional': {
      const named = bodyId(call.body)
      if (match && named !== undefined && named !== match.id)
        return fail({
          problem: 'contradiction',
          text: `Cannot update ${type}: the match has another id than the body`,
        })
      const id = match?.id ?? named ?? context.repository.newId()
      const body = typeof call.body === 'object' && call.body ? { ...call.body, id } : call.body
      const interaction = { kind: 'update', type, id } as const
      return { call: { ...call, interaction, body }, fullUrl, identity: `${type}/${id}` }
    }
  }
}

function bodyId(body: unknown): string | undefined {
  const id = typeof body === 'object' && body ? (body as { id?: unknown }).id : undefined
  return typeof id === 'string' ? id : undefined
}
