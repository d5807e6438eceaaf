import type { Question } from '../../interceptor/index.ts'
import type { ScopeContext } from '../../smart/index.ts'

/** What is left out of a line comes from the settings. */
export type Defaults = Pick<Question, 'searchPermission' | 'contexts' | 'userFilter' | 'operations'>

/** One line of `explain --jsonl`. */
export interface Line {
  /** As it was given; null where it was not, or could not be read. */
  readonly id: unknown
  readonly question: Question | undefined
}

const CONTEXTS: readonly ScopeContext[] = ['patient', 'user', 'system']

/** Reads a line; its question is undefined when it cannot be read. */
export function readLine(text: string, defaults: Defaults): Line {
  const value = parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { id: null, question: undefined }
  const members = value as Readonly<Record<string, unknown>>
  return { id: members.id ?? null, question: readQuestion(members, defaults) }
}

function readQuestion(members: Readonly<Record<string, unknown>>, defaults: Defaults): Question | undefined {
  const { method, url, patient, fhirUser, body } = members
  const scope = members.scope ?? ''
  const searchPermission =
    members.searchLetter == null ? defaults.searchPermission : readSearchLetter(members.searchLetter)
  const contexts = members.contexts == null ? defaults.contexts : readContexts(members.contexts)
  if (typeof method !== 'string' || typeof url !== 'string' || !isScope(scope)) return undefined
  if (!isOptionalText(patient) || !isOptionalText(fhirUser) || !searchPermission || !contexts)
    return undefined
  return {
    method,
    url,
    scope,
    patient: patient ?? undefined,
    fhirUser: fhirUser ?? undefined,
    body: body ?? undefined,
    searchPermission,
    contexts,
    userFilter: defaults.userFilter,
    operations: defaults.operations,
  }
}

export function readSearchLetter(value: unknown): 'r' | 's' | undefined {
  return value === 'r' || value === 's' ? value : undefined
}

export function readContexts(value: unknown): readonly ScopeContext[] | undefined {
  if (!Array.isArray(value)) return undefined
  const contexts = CONTEXTS.filter(context => value.includes(context))
  return value.every(item => CONTEXTS.includes(item)) ? contexts : undefined
}

function isScope(value: unknown): value is string | readonly string[] {
  return typeof value === 'string' || (Array.isArray(value) && value.every(item => typeof item === 'string'))
}

function isOptionalText(value: unknown): value is string | undefined | null {
  return value === undefined || value === null || typeof value === 'string'
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
