import { type Failed, fail } from '../../core/index.ts'

/** Why something cannot be accepted, as a text for its sender or for the log. */
export interface Fault extends Failed {
  readonly text: string
}

export function makeFault(text: string): Fault {
  return fail({ text })
}
