import { StringDecoder } from 'node:string_decoder'
import type { Settings } from '../../config/index.ts'
import { type Explanation, explain } from '../../interceptor/index.ts'
import type { Io } from '../command.ts'
import { findOfferedOperations } from '../offered-operations.ts'
import { userReachOf } from '../policy-file.ts'
import { type Defaults, readLine } from './question.ts'

type Answer = Omit<Explanation, 'hint'>

const UNREADABLE: Answer = {
  allowed: false,
  status: 400,
  by: null,
  within: null,
  limits: [],
  text: 'Cannot read line: expected a JSON object with method, url and scope.',
}

/** Answers each line of standard input with one of standard output, in order. */
export async function explainLines(io: Io, settings: Settings): Promise<void> {
  const { searchPermission, scopeContexts: contexts } = settings.fhir
  const operations = findOfferedOperations(settings)
  const defaults = { searchPermission, contexts, userFilter: userReachOf(settings), operations }
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
