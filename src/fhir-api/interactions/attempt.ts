import type { Context } from '../context.ts'
import type { Failure } from '../failure.ts'

/** How often a change is planned and committed before a conflict is reported. */
const ATTEMPTS = 3

/** Somebody else has changed what a change was planned from. */
export class Conflict {
  readonly failure: Failure
  constructor(failure: Failure) {
    this.failure = failure
  }
}

/** Plans and commits a change, and again after a conflict. The last conflict becomes a failure. */
export async function attempt<T>(
  { session }: Context,
  planAndCommit: () => Promise<T | Conflict>,
  attempts = ATTEMPTS,
): Promise<T | Failure> {
  for (let left = attempts - 1; ; left--) {
    const result = await (session.local ? session.local.plan(planAndCommit) : planAndCommit())
    if (!(result instanceof Conflict)) return result
    if (left <= 0) return result.failure
  }
}
