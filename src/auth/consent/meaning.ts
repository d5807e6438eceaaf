import { type Letter, parseScope, type ResourceScope } from '../../scope/index.ts'

const PLAIN: Readonly<Record<string, string | undefined>> = {
  launch: 'Which patient, and which encounter, you opened it for',
  openid: 'Who you are',
  fhirUser: 'Your name and staff identity',
  profile: 'Your name',
  online_access: 'Access as long as you are signed in',
  offline_access: 'Access while you are away, until you take it back',
}

const WORDS: Readonly<Record<Letter, string>> = {
  r: 'read',
  s: 'search',
  c: 'add',
  u: 'change',
  d: 'delete',
}

/** What a scope means, in words for a clinician; undefined when it says nothing that another does not. */
export function meaningOf(text: string): string | undefined {
  const scope = parseScope(text)
  return scope?.kind === 'resource' ? resourceMeaning(scope) : PLAIN[text]
}

function resourceMeaning({ context, type, letters, query }: ResourceScope): string {
  const verbs = (['r', 's', 'c', 'u', 'd'] as const)
    .filter(letter => letters.has(letter))
    .map(letter => WORDS[letter])
  const what = type === '*' ? 'all kinds of records, also kinds added later' : `${type} records`
  const part = query.length === 0 ? '' : ` (only where ${query.map(pair => pair.join(' is ')).join(' and ')})`
  const whose = context === 'patient' ? 'of this patient' : 'of every patient you may see'
  return `${capital(listed(verbs))} ${what}${part} ${whose}`
}

function listed(words: readonly string[]): string {
  const last = words.at(-1) ?? ''
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
