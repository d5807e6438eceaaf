import { StringDecoder } from 'node:string_decoder'
import type { Settings } from '../config/index.ts'
import { type Explanation, explain, type Question } from '../interceptor/index.ts'
import type { ScopeContext } from '../smart/index.ts'
import type { Io } from './command.ts'
import { findOfferedOperations, readUserFilter } from './start/trusted-issuers.ts'

type Defaults = Pick<Question, 'searchPermission' | 'contexts' | 'userFilter' | 'operations'>

interface Line {
  /** As sent; null if it is missing or unreadable. */
  readonly id: unknown
  readonly question: Question | undefined
}

const CONTEXTS: readonly ScopeContext[] = ['patient', 'user', 'system']

function readLine(text: string, defaults: Defaults): Line {
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

type Answer = Omit<Explanation, 'hint'>

const UNREADABLE: Answer = {
  allowed: false,
  status: 400,
  by: null,
  within: null,
  limits: [],
  text: 'Cannot read line: expected a JSON object with method, url and scope.',
}

export async function explainLines(io: Io, settings: Settings): Promise<void> {
  const { searchPermission, scopeContexts: contexts } = settings.fhir
  const operations = findOfferedOperations(settings)
  const defaults = { searchPermission, contexts, userFilter: readUserFilter(settings), operations }
  const answer = (line: string) => answerTo(line, defaults, settings.fhirBaseUrl)
  const decoder = new StringDecoder('utf8')
  let rest = ''
  for await (const chunk of io.stdin) {
    const lines = (rest + (typeof chunk === 'string' ? chunk : decoder.write(chunk))).split('\n')
    rest = lines.pop() ?? ''
    if (lines.length > 0) io.stdout.write(lines.map(answer).join(''))
  }
  rest += decoder.end()
  if (rest !== '') io.stdout.write(answer(rest))
}

function answerTo(line: string, defaults: Defaults, fhirBaseUrl: string): string {
  const { id, question } = readLine(line, defaults)
  const { allowed, status, by, within, limits, text } = question ? explain(question, fhirBaseUrl) : UNREADABLE
  return `${JSON.stringify({ id, allowed, status, by, within, limits, text })}\n`
}
