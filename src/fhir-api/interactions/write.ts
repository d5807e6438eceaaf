import { auditRefusal, isAboutAudit } from '../../audit/index.ts'
import { isFailure } from '../../core/index.ts'
import type { Interaction, Params, WriteInteraction } from '../../fhir/index.ts'
import { checkNewContent, type WrittenTogether } from '../access/check-content.ts'
import type { Commit } from '../backend.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure, FhirResponse } from '../response.ts'
import type { PlannedResponse, PlannedWrite } from './plan-change.ts'
import { planWrite, validateInTurns } from './plan-write.ts'
import { describeWrite, respondToWrite } from './write-response.ts'

/**
 * Reads the stored resource, checks it and the new content, and commits a change that depends on the checked version. After
 * a conflict it starts again, unless the caller has named a version.
 */
export async function write(
  context: Context,
  request: FhirRequest<WriteInteraction>,
): Promise<FhirResponse | Failure> {
  if (isAboutAudit(request.interaction)) return auditRefusal(request.interaction)
  const { session, audited } = context
  const passed = await session.passThrough?.(request)
  if (passed) return passed
  await validateInTurns(request)
  // Content that still arrives can be sent once.
  const isOnce = request.preconditions.ifMatch !== undefined || request.content !== undefined
  const attempts = isOnce ? 1 : undefined
  const result = await attempt(
    context,
    [request.interaction],
    () => planAndCommit(context, request),
    attempts,
  )
  if (isFailure(result)) return result
  if (result.kind === 'response') return result.response
  const [committed] = result.committed
  if (!committed) throw new Error('Cannot respond to a write: the backend did not say what it has done')
  const response = await respondToWrite(context, request, result.write, committed)
  return { ...response, durable: result.durable, ...(session.local && audited && { isRecorded: true }) }
}

interface CommittedWrite extends Commit {
  readonly write: PlannedWrite['write']
}

async function planAndCommit(
  context: Context,
  request: FhirRequest<WriteInteraction>,
): Promise<PlannedResponse | CommittedWrite | Failure | Conflict> {
  const planned = await planWrite(context, request)
  if (isFailure(planned) || planned.kind === 'response') return planned
  const failure = (await checkNew(context, planned)) ?? planned.conflict
  if (failure) return failure
  const { session, audited } = context
  const result = await session.commit([planned.write], {
    records:
      audited &&
      (([committed]) => (committed ? audited.createRecords(describeWrite(planned.write, committed)) : [])),
  })
  switch (result.kind) {
    case 'committed':
      return { ...result, write: planned.write }
    case 'conflict':
      return new Conflict(result.failure)
    case 'failed':
      return result.failure
  }
}

async function checkNew(
  context: Context,
  { request, permission, write: change }: PlannedWrite,
): Promise<Failure | undefined> {
  if (permission === 'd' || change.kind === 'delete') return undefined
  const before = change.kind === 'update' ? change.before : undefined
  const known = new Set(change.kind === 'update' ? [`${change.type}/${change.id}`] : [])
  const alone: WrittenTogether = { identities: new Set(), newPatients: new Map(), known }
  return checkNewContent(context, request, permission, change.resource, before, alone)
}

/** How often a change is planned and committed before a conflict is reported. */
const ATTEMPTS = 3

/** A version that a change was planned from is no longer current. */
export class Conflict {
  readonly failure: Failure
  constructor(failure: Failure) {
    this.failure = failure
  }
}

/** Plans and commits a change, again after each conflict. The last conflict becomes a failure. */
export async function attempt<T>(
  { session }: Context,
  interactions: readonly Interaction[],
  planAndCommit: () => Promise<T | Conflict>,
  attempts = ATTEMPTS,
): Promise<T | Failure> {
  const keys = session.serialize ? interactions.flatMap(it => findConditionKey(it) ?? []) : []
  const attemptAll = () => attemptEach(session, planAndCommit, attempts)
  return session.serialize && keys.length > 0 ? session.serialize(keys, attemptAll) : attemptAll()
}

/** Conditional writes with equal conditions have equal keys. */
function findConditionKey(interaction: Interaction): string | undefined {
  switch (interaction.kind) {
    case 'create':
      return interaction.ifNoneExist && formatKey(interaction.type, interaction.ifNoneExist)
    case 'update-conditional':
    case 'patch-conditional':
    case 'delete-conditional':
      return formatKey(interaction.type, interaction.params)
    default:
      return undefined
  }
}

function formatKey(type: string, params: Params): string {
  return `${type}?${JSON.stringify(params.toSorted())}`
}

async function attemptEach<T>(
  session: Context['session'],
  planAndCommit: () => Promise<T | Conflict>,
  attempts: number,
): Promise<T | Failure> {
  for (let left = attempts - 1; ; left--) {
    const result = await (session.local ? session.local.plan(planAndCommit) : planAndCommit())
    if (!(result instanceof Conflict)) return result
    if (left <= 0) return result.failure
  }
}
