import { type FactsArgument, type FactsIn, type Failed, fail, type StoredFacts } from '../../core/index.ts'
import { FAULTS, type FaultReason } from '../words/faults.ts'
import { fillWords } from '../words/reasons.ts'

/** Why something is not accepted. The text is for its sender or for the log. */
export interface Fault extends Failed {
  readonly reason: FaultReason
  readonly facts: StoredFacts
  readonly text: string
}

export function makeFault<Reason extends FaultReason>(
  reason: Reason,
  ...[facts]: FactsArgument<FactsIn<{ readonly text: (typeof FAULTS)[Reason] }>>
): Fault {
  const known: StoredFacts = facts ?? {}
  return fail({ reason, facts: known, text: fillWords(FAULTS[reason], known) })
}
