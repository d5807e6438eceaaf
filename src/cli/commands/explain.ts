import { StringDecoder } from 'node:string_decoder'
import { readSettings, type Settings } from '../../config/index.ts'
import { HOW, parseJson } from '../../core/index.ts'
import { type Explanation, explain, type Question } from '../../interceptor/index.ts'
import type { ScopeContext } from '../../smart/index.ts'
import {
  type Arguments,
  type Command,
  failMissing,
  failMisuse,
  getOptional,
  getRequired,
  getText,
  type Io,
  isSet,
  printJson,
} from '../command.ts'
import { findOfferedOperations, readFhirUser, readUserFilter } from '../start/files.ts'

/** Evaluates the interceptor's decision without a server, token or data. */
const explainCommand: Command = {
  usage: `
Usage: ${HOW} explain --method GET --url "/Condition?patient=1" --scope "patient/Condition.rs" --patient 1
       ${HOW} explain --jsonl < requests.jsonl

Options:
  --method <method>      GET, HEAD, POST, PUT, PATCH or DELETE (default: GET)
  --url <url>            URL of the request, absolute or relative to the FHIR base URL, with its query
  --scope "<scopes>"     granted scopes, as in the access token
  --patient <id>         patient of the access token
  --fhir-user <user>     user of the access token, for example Practitioner/1; an id alone means a Practitioner
  --body <text>          request body: JSON, or a form for _search. For a PATCH, an array is a JSON Patch and a Parameters
                         resource is a FHIRPath Patch
  --search-letter <r|s>  permission that a search needs (default: smart.fhir.search-letter)
  --contexts <list>      accepted scope contexts, for example patient,user (default: smart.fhir.scope-contexts)
  --json                 print JSON: allowed, status, by, within, limits and text
  --jsonl                read one JSON object per line from standard input, and write one per line

"Allowed" means that only the stored data can still cause a refusal. Exit code: 0 if allowed, 3 if refused; with --jsonl
always 0. An input line has id, method, url and scope, and optionally patient, fhirUser, body, searchLetter and contexts (a
list). An output line has id, allowed, status, by, within, limits and text.`,
  async run(args, io) {
    const settings = readSettings(io.env, io.cwd)
    if (isSet(args, 'jsonl')) {
      await explainLines(io, settings)
      return 0
    }
    const explanation = explain(readOptions(args, settings), settings.fhirBaseUrl)
    if (isSet(args, 'json')) printJson(io, explanation)
    else print(explanation, io)
    return explanation.allowed ? 0 : 3
  },
}

function print({ text, status, allowed, hint }: Explanation, io: Io): void {
  io.stdout.write(allowed ? `${text}\n` : `Refused with ${status}: ${text}\n`)
  if (hint !== undefined) io.stdout.write(`${hint}.\n`)
}

function readOptions(args: Arguments, settings: Settings): Question {
  const url = getText(args, 'url')
  if (url === undefined) return failMissing(args, '--url')
  return {
    method: getOptional(args, 'method') ?? 'GET',
    url: removeBase(url, settings.fhirBaseUrl),
    scope: getText(args, 'scope') ?? getRequired(args, 'scope'),
    patient: getOptional(args, 'patient'),
    fhirUser: formatFhirUser(getOptional(args, 'fhir-user'), settings.fhirBaseUrl),
    body: readBody(getOptional(args, 'body')),
    searchPermission: readSearchPermission(args) ?? settings.fhir.searchPermission,
    contexts: readContextsOption(args) ?? settings.fhir.scopeContexts,
    userFilter: readUserFilter(settings),
    operations: findOfferedOperations(settings),
  }
}

/** Accepts an absolute URL below the FHIR base, as pasted from a log. */
function removeBase(url: string, fhirBaseUrl: string): string {
  if (!/^https?:/i.test(url)) return url
  const below = url.startsWith(fhirBaseUrl) ? url.slice(fhirBaseUrl.length) : undefined
  if (below === undefined || !/^(?:[/?]|$)/.test(below))
    throw failMisuse(`Cannot use --url: expected a URL below ${fhirBaseUrl}, for example /Patient/1`)
  return below
}

function formatFhirUser(text: string | undefined, fhirBaseUrl: string): string | undefined {
  const user = text === undefined ? undefined : readFhirUser(text, fhirBaseUrl)
  return user && `${user.type}/${user.id}`
}

function readBody(text: string | undefined): unknown {
  return text === undefined ? undefined : (parseJson(text) ?? text)
}

function readSearchPermission(args: Arguments): 'r' | 's' | undefined {
  const text = getOptional(args, 'search-letter')
  const permission = readSearchLetter(text)
  if (text !== undefined && permission === undefined)
    throw failMisuse('Cannot use --search-letter: expected r or s')
  return permission
}

function readContextsOption(args: Arguments): readonly ScopeContext[] | undefined {
  const text = getOptional(args, 'contexts')
  const contexts = text === undefined ? undefined : readContexts(text.split(','))
  if (text !== undefined && contexts === undefined)
    throw failMisuse('Cannot use --contexts: expected one or more of patient, user and system')
  return contexts
}

type Defaults = Pick<Question, 'searchPermission' | 'contexts' | 'userFilter' | 'operations'>

interface Line {
  /** As sent; null if it is missing or unreadable. */
  readonly id: unknown
  readonly question: Question | undefined
}

const CONTEXTS: readonly ScopeContext[] = ['patient', 'user', 'system']

function readLine(text: string, defaults: Defaults): Line {
  const value = parseJson(text)
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

function readSearchLetter(value: unknown): 'r' | 's' | undefined {
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
  const answer = (line: string) => explainLine(line, defaults, settings.fhirBaseUrl)
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

function explainLine(line: string, defaults: Defaults, fhirBaseUrl: string): string {
  const { id, question } = readLine(line, defaults)
  const { allowed, status, by, within, limits, text } = question ? explain(question, fhirBaseUrl) : UNREADABLE
  return `${JSON.stringify({ id, allowed, status, by, within, limits, text })}\n`
}

export const commands = { explain: explainCommand }
