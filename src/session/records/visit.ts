import type { AppContext } from '../context.ts'
import type { Session } from '../sessions/session.ts'

/** A request of a live session: whoever asks the FHIR server asks in its name. */
export interface Visit {
  readonly context: AppContext
  readonly session: Session
  /** Goes along to the FHIR server, so that its log lines can be found. */
  readonly requestId: string
}
