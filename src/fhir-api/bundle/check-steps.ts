import { fail, type Resource, toPlain } from '../../fhir/index.ts'
import { failHidden } from '../../smart/index.ts'
import { checkContent } from '../access/check-content.ts'
import type { Context } from '../context.ts'
import { mayReadContent } from '../interactions/write-response.ts'
import { type Failure, failEntry, isFailure } from '../response.ts'
import { type BundleBudget, RESPONSE_TOO_LARGE } from './budget.ts'
import { formatEntry } from './entry.ts'
import type { EntryRequest, Step, WriteStep } from './steps.ts'

/** Checks the new content of every change, with references between the entries in place. */
export async function checkWrites(
  context: Context,
  steps: readonly Step[],
  takeTurns: () => Promise<void> | undefined,
): Promise<Failure | undefined> {
  const writes = steps.filter(step => step.kind === 'write')
  const identities = new Set(writes.flatMap(({ content, identity }) => (content ? [identity] : [])))
  const transaction = {
    identities,
    newPatients: collectNewPatients(writes),
    known: new Set(identities),
  }
  for (const { entry, planned, content } of writes) {
    const { request, permission, write } = planned
    const before = write.kind === 'update' ? write.before : undefined
    const failure =
      (content && permission !== 'd'
        ? await checkContent(context, request, permission, content, before, transaction)
        : undefined) ?? planned.conflict
    if (failure) return failEntry(entry, failure)
    await takeTurns()
  }
  return undefined
}

/** Only those whose id the server chooses: stored data may already refer to any other id. */
function collectNewPatients(writes: readonly WriteStep[]): ReadonlyMap<string, Resource> {
  return new Map(
    writes.flatMap(({ identity, content }) =>
      content?.resourceType === 'Patient' && content.id === undefined
        ? [[identity.slice('Patient/'.length), toPlain(content)] as const]
        : [],
    ),
  )
}

/** Performs the reads before the commit, so that one that fails changes nothing. A resource to be written is read as planned. */
export async function tryReads(
  context: Context,
  budget: BundleBudget,
  steps: readonly Step[],
  takeTurns: () => Promise<void> | undefined,
): Promise<Failure | undefined> {
  const written = new Map(
    steps.flatMap(step => (step.kind === 'write' ? [[step.identity, step] as const] : [])),
  )
  for (const step of steps) {
    if (step.kind !== 'read') continue
    const { interaction } = step.request
    const target = 'type' in interaction && 'id' in interaction ? `${interaction.type}/${interaction.id}` : ''
    const write = written.get(target)
    const failure =
      budget.problem() ??
      (write ? await foresee(context, step.request, write) : await tryRead(context, budget, step.request))
    if (failure) return failEntry(step.entry, failure)
    await takeTurns()
  }
  return undefined
}

async function tryRead(
  context: Context,
  budget: BundleBudget,
  request: EntryRequest,
): Promise<Failure | undefined> {
  const read = () => context.handle(context, request)
  const outcome = await (context.reads ? context.reads.spend(read) : read())
  if (isFailure(outcome)) return outcome
  return budget.takeSpace(formatEntry(outcome)) ? undefined : RESPONSE_TOO_LARGE
}

/** Fails if the caller could not read a resource after the transaction has written it. */
async function foresee(
  context: Context,
  request: EntryRequest,
  { content }: WriteStep,
): Promise<Failure | undefined> {
  if (request.interaction.kind !== 'read') return undefined
  const { type, id } = request.interaction
  if (!content) return fail({ problem: 'gone', type, id })
  return (await mayReadContent(context, request, { ...toPlain(content), id }))
    ? undefined
    : failHidden(request.access, 'r', type, id)
}
