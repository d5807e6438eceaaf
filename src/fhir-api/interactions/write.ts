import { isDeepStrictEqual } from 'node:util'
import { auditRefusal, isAboutAudit } from '../../audit/index.ts'
import { isFailure } from '../../core/index.ts'
import {
  type Interaction,
  type Params,
  type Resource,
  toPlain,
  type WriteInteraction,
} from '../../fhir/index.ts'
import { checkNewContent, type WrittenTogether } from '../access/check-content.ts'
import type { Commit, Committed, VersionedWrite } from '../backend.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure, FhirResponse } from '../response.ts'
import type { PlannedResponse, PlannedWrite } from './plan-change.ts'
import { createsResource, planWrite, validateInTurns } from './plan-write.ts'
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
  if (request.isTrial) return tryWrite(context, request)
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
    last => planAndCommit(context, request, last),
    attempts,
  )
  if (isFailure(result)) return result
  if (result.kind === 'response') return result.response
  const [committed] = result.committed
  if (!committed) throw new Error('Cannot respond to a write: the backend did not say what it has done')
  const response = await respondToWrite(context, request, result.write, committed)
  return { ...response, durable: result.durable, ...(session.local && audited && { isRecorded: true }) }
}

/** Plans and checks a change without making it. The response describes the version that it would replace, if any. */
async function tryWrite(
  context: Context,
  request: FhirRequest<WriteInteraction>,
): Promise<FhirResponse | Failure> {
  await validateInTurns(request)
  const planned = await attempt(context, [], () => planWrite(context, request), 1)
  if (isFailure(planned)) return planned
  if (planned.kind === 'response') return planned.response
  const failure = (await checkNew(context, planned)) ?? planned.conflict
  if (failure) return failure
  const { write: change } = planned
  const before = change.kind === 'create' || change.before?.deleted ? undefined : change.before
  return {
    ...describeWrite(change, { status: 200 }),
    version: before && { etag: before.etag, lastModified: before.lastModified },
  }
}

interface CommittedWrite extends Commit {
  readonly write: PlannedWrite['write']
}

async function planAndCommit(
  context: Context,
  request: FhirRequest<WriteInteraction>,
  last: Conflict | undefined,
): Promise<PlannedResponse | CommittedWrite | Failure | Conflict> {
  const planned = await planWrite(context, request)
  if (isFailure(planned) || planned.kind === 'response') return planned
  const failure = (await checkNew(context, planned)) ?? planned.conflict
  if (failure) return failure
  if (last?.mayBeCreated && createsResource(planned)) return last.failure
  const applied = last?.sent && findApplied(last.sent, planned.write)
  if (applied) return { kind: 'committed', committed: [applied], write: planned.write }
  const { session, audited } = context
  const result = await session.commit([planned.write], {
    records:
      audited &&
      (async ([committed]) =>
        committed ? audited.createRecords(describeWrite(planned.write, committed)) : []),
  })
  switch (result.kind) {
    case 'committed':
      return { ...result, write: planned.write }
    case 'conflict':
    case 'matched': {
      const mayBeCreated = result.kind === 'matched' || last?.mayBeCreated
      return new Conflict(result.failure, { sent: planned.write, mayBeCreated })
    }
    case 'failed':
      return result.failure
  }
}

/**
 * The result of a write that was carried out although its response does not say so: a proxy may send a PUT twice, or change
 * a 201 to 200. A patch must not be applied to its own result.
 */
function findApplied(sent: VersionedWrite, planned: VersionedWrite): Committed | undefined {
  if (sent.kind === 'delete' || planned.kind !== 'update' || !planned.before) return undefined
  const { before } = planned
  const current = before.deleted ? undefined : before.parse()
  if (!current || isFailure(current)) return undefined
  return isDeepStrictEqual(getContent(current), getContent(toPlain(sent.resource)))
    ? { status: 200, version: before, stored: before }
    : undefined
}

/** Without the parts that a server sets. */
function getContent({ id: _id, meta: _meta, ...content }: Resource): object {
  return content
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

/** A version that a change was planned from is no longer current, or a create has found a match. */
export class Conflict {
  readonly failure: Failure
  readonly sent: VersionedWrite | undefined
  readonly mayBeCreated: boolean | undefined

  constructor(failure: Failure, { sent, mayBeCreated }: SentWrite = {}) {
    this.failure = failure
    this.sent = sent
    this.mayBeCreated = mayBeCreated
  }
}

interface SentWrite {
  readonly sent?: VersionedWrite
  /** Whether the resource may have been created, so that no further create is sent. */
  readonly mayBeCreated?: boolean | undefined
}

/** Plans and commits a change, after the conflict of the last attempt. */
type PlanAndCommit<T> = (last: Conflict | undefined) => Promise<T | Conflict>

/** Plans and commits a change, again after each conflict. The last conflict becomes a failure. */
export async function attempt<T>(
  { session }: Context,
  interactions: readonly Interaction[],
  planAndCommit: PlanAndCommit<T>,
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
  planAndCommit: PlanAndCommit<T>,
  attempts: number,
): Promise<T | Failure> {
  let last: Conflict | undefined
  for (let left = attempts - 1; ; left--) {
    const again = () => planAndCommit(last)
    const result = await (session.local ? session.local.plan(again) : again())
    if (!(result instanceof Conflict)) return result
    if (left <= 0) return result.failure
    last = result
  }
}
