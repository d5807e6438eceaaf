import { isRecord } from '../../core/index.ts'
import { createOutcome, type IssueCode, type Refused } from '../../fhir/index.ts'

const CODES: Readonly<Record<number, IssueCode>> = { 413: 'too-long', 415: 'not-supported' }

/** The response for a request that the framework or its body parser cannot read. Undefined for an error that is not the client's. */
export function describeUnreadable(error: unknown): Refused | undefined {
  if (!isRecord(error) || typeof error.statusCode !== 'number') return undefined
  const { statusCode: status, message } = error
  if (status < 400 || status > 499) return undefined
  const outcome = createOutcome(CODES[status] ?? 'structure', `Cannot read request: ${message}`)
  return { allowed: false, status, headers: {}, outcome }
}

const REASONS: Readonly<Record<number, string>> = {
  413: 'it is too large',
  415: 'its content type is not supported',
}

/** The refusal for the records, without the message of the parser, which may quote the body. */
export function withoutQuotation(unreadable: Refused): Refused {
  const reason = `Cannot read request: ${REASONS[unreadable.status] ?? 'it is malformed'}`
  return { ...unreadable, outcome: createOutcome('structure', reason) }
}
