import { randomUUID } from 'node:crypto'
import { isFailure, isRecord } from '../../../core/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import type { Upstream } from '../http/client.ts'
import type { ExchangeOutcome } from '../http/exchange.ts'
import { parseResource } from '../http/response.ts'
import { type ChosenProfile, chooseProfile, describeProfile, type ProfileName } from '../profile.ts'

/** What a server shows of itself. */
interface Shown {
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The JSON of its CapabilityStatement, or of its response to `createUnknownPath`. */
  readonly body?: unknown
}

/** A sign of HAPI: a site may rename the software, and a proxy may refuse `metadata` or remove headers. */
export function findSignOfHapi({ headers, body }: Shown): string | undefined {
  if (/\bHAPI FHIR\b/i.test(String(headers?.['x-powered-by']))) return 'its header X-Powered-By'
  if (!isRecord(body)) return undefined
  if (isRecord(body.software) && /\bHAPI\b/i.test(String(body.software.name)))
    return 'the software in its CapabilityStatement'
  const issues: readonly unknown[] = Array.isArray(body.issue) ? body.issue : []
  const hasCode = issues.some(it => isRecord(it) && /^HAPI-\d{4}: /.test(String(it.diagnostics)))
  return hasCode ? 'the code in an error message' : undefined
}

/** The path of a resource that does not exist: the response shows the server's own error message. */
export function createUnknownPath(): string {
  return `/Basic/${randomUUID()}`
}

/** Decides on the profile of the upstream. */
export interface Recognition {
  /** No request waits for it. */
  current(): ChosenProfile
  /** Takes any response. Only its headers count, because callers influence the content. */
  observe(answer: ExchangeOutcome): void
  /** Asks the upstream for an error message, unless it is recognized. */
  ask(): Promise<void>
  /** Takes the result of reading the CapabilityStatement, and asks again if that shows nothing. */
  learn(statement: Readonly<Record<string, unknown>> | Failure): Promise<void>
  /** Waits for a request that has been sent by `ask`. */
  settled(): Promise<void>
}

export function createRecognition(
  setting: ProfileName,
  upstream: () => Upstream,
  warn: (text: string) => void,
): Recognition {
  let chosen = chooseProfile(setting, undefined)
  let isLogged = false
  let isKnown = setting !== 'auto'
  let asking: Promise<void> | undefined

  function take(shown: Shown): void {
    const sign = isKnown ? undefined : findSignOfHapi(shown)
    if (sign === undefined) return
    isKnown = true
    chosen = chooseProfile(setting, sign)
    log()
  }

  function log(): void {
    isLogged = true
    warn(`Upstream ${describeProfile(chosen)}`)
  }

  async function ask(): Promise<void> {
    if (!isKnown) take({ body: await askForError(upstream()) })
    if (!isLogged) log()
  }

  function askOnce(): Promise<void> {
    asking ??= ask().finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    current: () => chosen,
    observe: answer => {
      if (!isKnown && !isFailure(answer)) take(answer)
    },
    ask: askOnce,
    learn(statement) {
      if (!isFailure(statement)) take({ body: statement })
      return askOnce()
    },
    settled: async () => asking,
  }
}

async function askForError(upstream: Upstream): Promise<unknown> {
  const headers = { accept: 'application/fhir+json' }
  const response = await upstream.ask({ method: 'GET', path: createUnknownPath(), headers })
  return isFailure(response) || response.status !== 404 ? undefined : parseResource(response)
}
