/**
 * `npm run test:mcp-conformance`: the conformance suite of the MCP project against the endpoint of assistants and the auth server,
 * with every scenario that needs no tools of its own. It is fetched by npx. A person in Chromium allows the access. Exits 1
 * if a scenario fails or warns.
 */
import { spawn } from 'node:child_process'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stripVTControlCharacters } from 'node:util'
import { getAgentToken } from '../test/support/agent-token.ts'
import { launchBrowser } from '../test/support/browser.ts'
import { freePorts } from '../test/support/free-ports.ts'
import { newPlace, runProgram, startProcess } from '../test/support/started.ts'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const CLIENT = 'conformance'
const SCOPE = 'launch/patient patient/*.rs'

/** Of `conformance list --server`, with the version that they are for. The others call tools, prompts and resources of a test server. */
const SCENARIOS = [
  ['server-stateless', '2026-07-28'],
  ['server-initialize', '2025-11-25'],
  ['ping', '2025-11-25'],
  ['tools-list', '2026-07-28'],
  ['tools-list', '2025-11-25'],
  ['resources-list', '2026-07-28'],
  ['prompts-list', '2026-07-28'],
  ['dns-rebinding-protection', '2026-07-28'],
  ['caching', '2026-07-28'],
  ['http-header-validation', '2026-07-28'],
  ['sep-2164-resource-not-found', '2026-07-28'],
] as const

/** Checks of `server-stateless` that need tools of a test server. */
const NEED_TOOLS: readonly string[] = [
  'sep-2575-server-rejects-undeclared-capability',
  'sep-2575-missing-capability-http-400',
  'sep-2575-http-server-no-independent-requests-on-stream',
  'sep-2575-server-no-log-without-loglevel',
]

const [port = 0] = await freePorts(1)
const place = await newPlace({
  SMART_AGENTS_CALLS_PER_MINUTE: '10000',
  SMART_ACCESS_TOKEN_TTL_SECONDS: '900',
})
const servers = startProcess(['start'], place)
const proxy = createServer()
try {
  await servers.printed(/is running/)
  await register()
  const url = await startProxy()
  const failed: string[] = []
  for (const [scenario, version] of SCENARIOS) {
    const passed = await run(['server', '--url', url, '--scenario', scenario, '--spec-version', version])
    if (!passed) failed.push(`${scenario} (${version})`)
  }
  if (!(await runAuthorization())) failed.push('authorization')
  process.stdout.write(failed.length === 0 ? 'Conformant\n' : `Failed: ${failed.join(', ')}\n`)
  process.exitCode = failed.length === 0 ? 0 : 1
} finally {
  proxy.close()
  servers.child.kill('SIGTERM')
  await servers.ended()
  place.remove()
}

async function register(): Promise<void> {
  const { exitCode, stderr } = await runProgram(
    [
      ...['client', 'add', '--id', CLIENT, '--public', '--scope', 'patient/*.rs'],
      ...['--redirect-uri', 'http://127.0.0.1/callback'],
    ],
    place,
  )
  if (exitCode !== 0) throw new Error(stderr)
}

/** The suite sends no token, so that a proxy adds it. */
async function startProxy(): Promise<string> {
  const token = await getAgentToken(place, { client: CLIENT, scope: SCOPE, patient: 'patient-1' })
  const target = new URL(`${place.fhirUrl}/mcp`)
  proxy.on('request', (incoming, outgoing) => {
    const { method, headers } = incoming
    const sent = request(
      target,
      { method, headers: { ...headers, authorization: `Bearer ${token}` } },
      reply => {
        outgoing.writeHead(reply.statusCode ?? 502, reply.rawHeaders)
        reply.pipe(outgoing)
      },
    )
    sent.on('error', () => outgoing.writeHead(502).end())
    incoming.pipe(sent)
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  return `http://localhost:${(proxy.address() as AddressInfo).port}${target.pathname}`
}

/** Whether a run of the suite has neither failures nor warnings. */
async function run(args: readonly string[], onOutput: (text: string) => void = () => {}): Promise<boolean> {
  const child = spawn('npx', ['--yes', SUITE, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += stripVTControlCharacters(chunk)
    onOutput(printed)
  })
  await new Promise(resolve => child.once('close', resolve))
  const failed = [...printed.matchAll(/\[([\w-]+) *\] (?:FAILURE|WARNING)/g)].map(([, check = '']) => check)
  const unexpected = failed.filter(check => !NEED_TOOLS.includes(check))
  const isComplete = /^(Passed: \d+\/\d+|Total: \d+ passed, 0 failed)/m.test(printed)
  process.stdout.write(unexpected.length > 0 || !isComplete ? printed : `${args.join(' ')}: passed\n`)
  return isComplete && unexpected.length === 0
}

/** The person signs in, picks the patient and allows the access, each time that the suite prints a link. */
async function runAuthorization(): Promise<boolean> {
  const browser = await launchBrowser()
  const page = await browser.newPage()
  const opened = new Set<string>()
  const follow = async (link: string) => {
    await page.goto(link)
    const isSignIn = await page.getByLabel('Username').isVisible()
    if (isSignIn) {
      await page.getByLabel('Username').fill('clinician')
      await page.getByLabel('Password').fill('sallyport')
      await page.getByRole('button', { name: 'Sign in' }).click()
    }
    await page.getByRole('heading', { level: 1, name: /^Choose a patient/ }).waitFor()
    await page.getByRole('radio').first().check()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: 'Allow access' }).click()
  }
  try {
    return await run(
      [
        ...[
          'authorization',
          '--url',
          place.authUrl,
          '--client-id',
          CLIENT,
          '--resource',
          `${place.fhirUrl}/mcp`,
        ],
        ...['--port', String(port)],
      ],
      printed => {
        for (const [link] of printed.matchAll(/http\S+\/oauth2\/authorize\?\S+(?=\s)/g)) {
          if (opened.has(link)) continue
          opened.add(link)
          follow(link).catch((error: unknown) => process.stderr.write(`${error}\n`))
        }
      },
    )
  } finally {
    await browser.close()
  }
}
