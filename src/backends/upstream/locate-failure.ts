import { fail, toPlain, validate } from '../../fhir/index.ts'
import type { Failure, VersionedWrite } from '../../fhir-api/index.ts'

const ENTRY = /^Bundle\.entry\[(\d{1,4})\]/

/**
 * The change that the upstream has refused. The upstream may name a place in the transaction that was sent to it, which is
 * not the Bundle of the caller. If it names none, the change is the first one whose content is invalid.
 */
export function locateFailure(
  failure: Failure,
  writes: readonly VersionedWrite[],
): { readonly failure: Failure; readonly write?: number } {
  if (failure.problem !== 'upstream-declined') return { failure }
  let write: string | undefined
  const issue = failure.outcome.issue.map(({ expression, ...rest }) => {
    // As the upstream has sent it, so it may be anything.
    const places = Array.isArray(expression) ? expression.filter(it => typeof it === 'string') : []
    const others = places.filter(it => !ENTRY.test(it))
    write ??= places.flatMap(it => ENTRY.exec(it)?.[1] ?? [])[0]
    return { ...rest, ...(others.length > 0 && { expression: others }) }
  })
  const at = write === undefined ? findInvalid(failure, writes) : Number(write)
  return {
    failure: fail({ ...failure, outcome: { ...failure.outcome, issue } }),
    ...(at !== undefined && { write: at }),
  }
}

function findInvalid(
  { status }: Extract<Failure, { readonly problem: 'upstream-declined' }>,
  writes: readonly VersionedWrite[],
): number | undefined {
  if (status !== 400 && status !== 422) return undefined
  const at = writes.findIndex(it => it.kind !== 'delete' && validate(toPlain(it.resource)).length > 0)
  return at < 0 ? undefined : at
}
