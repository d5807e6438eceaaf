import type { Finding, Recommendation, Send, UpstreamReport } from '../../backends/upstream/index.ts'
import { listEffectiveSettings, readConfiguration, type Settings } from '../../config/index.ts'
import { describeError, findCode, HOW } from '../../core/index.ts'
import {
  type Command,
  CommandFailure,
  formatColumns,
  getOptional,
  type Io,
  isSet,
  printJson,
} from '../command.ts'
import { readUpstreamTls } from '../start/files.ts'
import { readUpstreamAuth } from '../start/gateway.ts'

const checkUpstreamCommand: Command = {
  busy: 'Checking the FHIR server',
  usage: `
Usage: ${HOW} check upstream [--url <base>] [--write] [--json]

Tries everything that the gateway relies on, and prints a table with the results and the settings that it recommends:
  ok       the server behaves as FHIR R4 defines
  handled  the server differs, and the gateway handles it
  unsafe   the gateway cannot protect data on this server
  unknown  not tried

Options:
  --url <base>  FHIR base URL of the server (default: SMART_FHIR_UPSTREAM_URL). Only if both are the same, sends the
                gateway's credentials
  --write       also try writes. Creates resources with a tag of their own (urn:sallyport:check), and deletes them
  --json        print JSON: url, software, inUse, findings and recommended settings

Exit code: 0 if the server can be used with the settings in effect, 1 if a result or a setting is unsafe.

Example:
  ${HOW} check upstream --url http://localhost:8888/fhir --write`,
  async run(args, io) {
    const configuration = readConfiguration(io.env, io.cwd)
    const { fhir } = configuration.settings
    const baseUrl = (getOptional(args, 'url') ?? fhir.upstreamUrl)?.replace(/\/+$/, '')
    if (baseUrl === undefined || !/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? ''))
      throw new CommandFailure('Cannot check: set SMART_FHIR_UPSTREAM_URL or --url to an http or https URL')
    const { checkUpstream, chooseProfile, describeProfile, recommendSettings } = await import(
      '../../backends/upstream/index.ts'
    )
    const inEffect = new Map(listEffectiveSettings(configuration).map(it => [it.name, it.value]))
    const findValue = (name: string, initial: string) => inEffect.get(`smart.fhir.${name}`) ?? initial
    const report = await withClient(baseUrl, configuration.settings, send =>
      checkUpstream({ send, baseUrl, isWriting: isSet(args, 'write') }),
    )
    const { profile } = fhir.upstream
    const recommended = recommendSettings(report, {
      'upstream-profile': profile,
      'upstream-narrowing': findValue('upstream-narrowing', 'auto'),
      'upstream-search-cache': findValue('upstream-search-cache', 'bypass'),
    })
    const inUse = describeProfile(chooseProfile(profile, report.sign))
    const { software, findings } = report
    if (isSet(args, 'json')) printJson(io, { url: baseUrl, software, inUse, findings, recommended })
    else print(`${baseUrl}: ${software}\nIn use: ${inUse}`, report, recommended, io)
    return isUnsafe(report.findings, recommended) ? 1 : 0
  },
}

function isUnsafe(findings: readonly Finding[], recommended: readonly Recommendation[]): boolean {
  return findings.some(it => it.level === 'unsafe') || recommended.some(it => it.unsafe !== undefined)
}

function print(
  title: string,
  { findings, left }: UpstreamReport,
  recommended: readonly Recommendation[],
  io: Io,
): void {
  const settings = recommended.map(({ setting, inEffect, recommended: value, unsafe }) => [
    setting,
    inEffect,
    value,
    unsafe === undefined ? '' : `unsafe: ${unsafe}`,
  ])
  const lines = [
    title,
    '',
    formatColumns(findings.map(it => [it.level, it.check, it.result])),
    '',
    formatColumns([['setting', 'in effect', 'recommended', ''], ...settings]),
    ...left.map(path => `Cannot delete ${path}`),
  ]
  io.stdout.write(`${lines.join('\n')}\n`)
}

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024

/** Sends with the gateway's credentials, and only to the gateway's upstream. */
export async function withClient<T>(
  baseUrl: string,
  { fhir }: Settings,
  work: (send: Send) => Promise<T>,
): Promise<T> {
  const { Agent, request: sendRequest } = await import('undici')
  const { createCredentials } = await import('../../backends/upstream/index.ts')
  const isUpstream = baseUrl === fhir.upstreamUrl
  const timeoutMs = fhir.upstream.timeoutSeconds * 1000
  const auth = isUpstream ? readUpstreamAuth(fhir.upstream) : ({ kind: 'none' } as const)
  const credentials = createCredentials({ auth, fetch, clock: Date.now, timeoutMs })
  const dispatcher = new Agent({
    maxResponseSize: MAX_RESPONSE_BYTES,
    ...(isUpstream && { connect: readUpstreamTls(fhir.upstream) }),
  })
  const send: Send = async ({ method, path, headers = {}, body = null }) => {
    const authorization = await credentials.getAuthorization()
    const began = performance.now()
    const response = await sendRequest(baseUrl + path, {
      method,
      body,
      dispatcher,
      signal: AbortSignal.timeout(timeoutMs),
      headers: { ...headers, ...(authorization !== undefined && { authorization }) },
    })
    const text = await response.body.text()
    const milliseconds = performance.now() - began
    const given = Object.entries(response.headers).map(([name, value]) => [name, value && String(value)])
    return { status: response.statusCode, headers: Object.fromEntries(given), text, milliseconds }
  }
  try {
    return await work(send)
  } catch (error) {
    throw new CommandFailure(`Cannot reach ${baseUrl}: ${findCode(error) ?? describeError(error)}`)
  } finally {
    await dispatcher.close()
  }
}

export const commands = { 'check upstream': checkUpstreamCommand }
