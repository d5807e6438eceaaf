import { STATUS_CODES } from 'node:http'
import { fail, findJsonExcess, isRecord } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import { RESPONSE_VALUES } from '../limits.ts'
import { answerOf } from '../problem.ts'

/**
 * JSON of the answer to one entry: what went wrong is its `outcome`, what was asked for is its `resource`. Content is
 * put in as it came and not kept as an object, which would take several times the memory.
 */
export function entryAnswer(answer: Answer): string {
  const said = readBody(answer)
  if (said === 'broken') return entryAnswer(answerOf(BROKEN))
  const { status, version, headers = {} } = answer
  const location = answer.location ?? headers.location
  const etag = version?.etag ?? headers.etag
  const lastModified = instantOf(version?.lastModified ?? headers['last-modified'])
  const response = JSON.stringify({
    status: `${status} ${STATUS_CODES[status] ?? ''}`.trim(),
    ...(location !== undefined && { location }),
    ...(etag !== undefined && { etag }),
    ...(lastModified !== undefined && { lastModified }),
  })
  const parts: string[] = []
  if (location !== undefined)
    parts.push(`"fullUrl":${JSON.stringify(location.replace(/\/_history\/[^/]+$/, ''))}`)
  if (said?.isOutcome) parts.push(`"response":${response.slice(0, -1)},"outcome":${said.text}}`)
  else {
    if (said) parts.push(`"resource":${said.text}`)
    parts.push(`"response":${response}`)
  }
  return `{${parts.join(',')}}`
}

const BROKEN = fail({ problem: 'upstream-broken', why: 'its JSON is invalid' })

function readBody({
  body,
  isUnparsed,
}: Answer): { readonly text: string; readonly isOutcome: boolean } | 'broken' | undefined {
  if (typeof body !== 'string') return undefined
  if (!isUnparsed) return { text: body, isOutcome: body.startsWith('{"resourceType":"OperationOutcome"') }
  if (findJsonExcess(body, RESPONSE_VALUES)) return 'broken'
  try {
    const value: unknown = JSON.parse(body)
    return { text: body, isOutcome: isRecord(value) && value.resourceType === 'OperationOutcome' }
  } catch {
    return 'broken'
  }
}

/** What the upstream calls a time may be none. */
function instantOf(time: string | number | undefined): string | undefined {
  const date = new Date(time ?? '')
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
