import {
  findJsonExcess,
  type Interaction,
  isResource,
  outcome,
  outsideGrant,
  type Refused,
  resourceTypes,
} from '../../fhir/index.ts'
import type { Access } from '../../smart/index.ts'
import { isJsonObject } from '../decision/json.ts'
import { isShown, showsOf } from './shows.ts'

/** What the host answered. */
export interface Answer {
  readonly status: number
  readonly body: Buffer
}

/** The answer goes out as it is, without its body, or not at all. */
export type AnswerVerdict = 'release' | 'empty' | Refused

// Whether something is absent, gone or unchanged is a secret where it may be outside the grant.
const TELLING: ReadonlySet<number> = new Set([304, 404, 410])

/**
 * How the host's answer is judged before it is released, or undefined when the grant reaches all that can be in it.
 * The entries are the interactions of a Bundle, in their order.
 */
export function answerJudge(
  interaction: Interaction,
  entries: readonly Interaction[],
  access: Access,
  baseUrl: string,
): ((answer: Answer) => AnswerVerdict) | undefined {
  if (isPlain(interaction, access)) return undefined
  return answer => {
    if (answer.status >= 300) return judgeFailure(answer)
    if (interaction.kind === 'bundle') return judgeEntries(parse(answer.body), entries, access, baseUrl)
    const shows = showsOf(interaction, access)
    if (answer.body.length === 0) return shows.written ? 'release' : outsideGrant()
    if (isShown(parse(answer.body), shows, baseUrl)) return 'release'
    return shows.written ? 'empty' : outsideGrant()
  }
}

/** Whether the answer can hold nothing but what is reached as a whole. */
function isPlain(interaction: Interaction, access: Access): boolean {
  switch (interaction.kind) {
    case 'read':
    case 'vread':
    case 'history-instance':
      return access.filterFor(interaction.type, 'r') === 'everything'
    default:
      return resourceTypes.every(
        type => access.filterFor(type, 'r') === 'everything' && access.filterFor(type, 's') === 'everything',
      )
  }
}

/** Each entry of the response answers the request in the same place (R4 http.html#transaction-response). */
function judgeEntries(
  body: unknown,
  interactions: readonly Interaction[],
  access: Access,
  baseUrl: string,
): AnswerVerdict {
  const answered: unknown =
    isResource(body) && body.resourceType === 'Bundle' ? (body.entry ?? []) : undefined
  if (!Array.isArray(answered) || answered.length !== interactions.length) return outsideGrant()
  let verdict: AnswerVerdict = 'release'
  for (const [at, interaction] of interactions.entries()) {
    const shows = showsOf(interaction, access)
    const entry: unknown = answered[at]
    if (!isJsonObject(entry) || (!shows.written && isTelling(entry.response))) return outsideGrant()
    if (entry.resource === undefined || isShown(entry.resource, shows, baseUrl)) continue
    // What was written stays written: the caller is told so, and shown nothing.
    if (!shows.written) return outsideGrant()
    verdict = 'empty'
  }
  return verdict
}

function isTelling(response: unknown): boolean {
  return isJsonObject(response) && TELLING.has(Number.parseInt(String(response.status), 10))
}

function judgeFailure(answer: Answer): AnswerVerdict {
  if (TELLING.has(answer.status)) return outsideGrant()
  const body = parse(answer.body)
  if (isResource(body) && body.resourceType === 'OperationOutcome') return 'release'
  const text = 'The FHIR server could not do it.'
  return { allowed: false, status: answer.status, headers: {}, outcome: outcome('processing', text) }
}

function parse(body: Buffer): unknown {
  try {
    const text = body.toString('utf8')
    return findJsonExcess(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
