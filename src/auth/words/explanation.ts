import type { StoredFacts } from '../../core/index.ts'
import { findDifference } from './difference.ts'
import type { ComparedValue } from './reason.ts'
import { type AnyWords, fillWords, findWords } from './reasons.ts'

/** A reason as the audit trail has it. */
export interface NamedReason {
  readonly reason?: string | undefined
  readonly facts?: StoredFacts | undefined
  readonly compared?: readonly ComparedValue[] | undefined
}

/** The cause of a refusal, and what to do. */
export interface ExplainedReason {
  readonly cause: string
  readonly action: string
}

export function explainReason({ reason, ...values }: NamedReason): ExplainedReason | undefined {
  const words = findWords(reason)
  return words && explainWords(words, values)
}

/** Fills in the words of a reason, with the values that were compared. */
export function explainWords(
  words: AnyWords,
  { facts = {}, compared = [] }: Pick<NamedReason, 'facts' | 'compared'>,
): ExplainedReason {
  const sent = words.compares === undefined ? undefined : describeSent(words.compares, compared)
  const cause = [
    sent ?? endSentence(fillWords(words.cause ?? words.hint ?? words.detail ?? words.sentence, facts)),
    words.note,
  ].filter(text => text)
  return { cause: cause.join(' '), action: fillWords(words.remedy, facts) }
}

/** Some sentences of the FHIR server have no full stop, as contracts with clients require. */
export function endSentence(text: string): string {
  return text.replace(/[^.?!]$/, '$&.')
}

/** Names a sent value and the expected one, and how they differ. Undefined if they were not compared. */
function describeSent(name: string, compared: readonly ComparedValue[]): string | undefined {
  const found = compared.find(one => one.name === name)
  if (!found) return undefined
  const { sent, expected, origin } = found
  if (sent === undefined) return `The request has no ${name}.`
  const difference = findDifference(sent, expected)
  if (!difference) return `The app sends the ${name} ${sent}, and none is ${origin}.`
  const { nearest, words } = difference
  const like = expected.length > 1 ? ', the most similar one' : ''
  const how = words.length === 0 ? '' : ` The difference: ${words.join('; ')}.`
  return `The app sends the ${name} ${sent}. ${ORIGINS[origin]} ${nearest}${like}.${how}`
}

const ORIGINS: Readonly<Record<ComparedValue['origin'], string>> = {
  registered: 'Registered is',
  required: 'This server requires',
  granted: 'Granted is',
  launched: 'The launch is for',
  'in the authorization request': 'The authorization request had',
}
