import { fork } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { Pool } from 'undici'
import { type Auditor, createAuditor, createFhirAudit, noAudit, startSealing } from '../src/audit/index.ts'
import { fhirServer, openRepository } from '../src/backends/sqlite/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { createSealer, openStore } from '../src/store/index.ts'

/**
 * The same read of the embedded FHIR server unguarded, guarded with audit off, and guarded with audit on, each with a
 * `patient/` and a `user/` token, and with audit on while a hash chain seals the records. The servers take turns in an order
 * that changes with each round, so that other load on the machine affects all of them alike. Prints the medians of each
 * round's ratios to the unguarded server, and of the sealed to the audited one. Expected: 0.9 or more with audit off, 0.6 or
 * more with audit on.
 *
 *   node bench/audit.ts [connections]
 */
const BASE = 'http://fhir.test/fhir'
const ISSUER = 'http://auth.test'
const ROUNDS = 9
const ROUND_MS = 1000
const VARIANTS = ['unguarded', 'guarded', 'audited', 'sealed'] as const
type Variant = (typeof VARIANTS)[number]

/** The server and the token of each line. */
const LINES = {
  unguarded: ['unguarded', 'patient'],
  'guarded patient/': ['guarded', 'patient'],
  'guarded user/': ['guarded', 'user'],
  'audited patient/': ['audited', 'patient'],
  'audited user/': ['audited', 'user'],
  'sealed patient/': ['sealed', 'patient'],
} as const satisfies Readonly<Record<string, readonly [Variant, 'patient' | 'user']>>
type Line = keyof typeof LINES

if (process.argv[2] === 'serve')
  await serve(process.argv[3] as Variant, process.argv[4] ?? '', process.argv[5] ?? '')
else await measure(Number(process.argv[2] ?? 64))

async function serve(variant: Variant, folder: string, jwk: string): Promise<void> {
  const guard = createInterceptor({
    authUrl: ISSUER,
    fhirBaseUrl: BASE,
    contexts: ['patient', 'user'],
    fetch: async () => Response.json({ keys: [JSON.parse(jwk)] }),
  })
  await guard.start()
  const store = await openStore(`sqlite:${join(folder, `${variant}.db`)}`)
  const isAudited = variant === 'audited' || variant === 'sealed'
  const auditor: Auditor = isAudited ? createAuditor({ store }) : noAudit
  const sealing =
    variant === 'sealed'
      ? startSealing(store, createSealer('a secret of the benchmark'), { onError: console.error })
      : undefined
  const app = await fhirServer({
    baseUrl: BASE,
    dataFile: join(folder, 'fhir.db'),
    smartConfiguration: {},
    ...(variant !== 'unguarded' && { guard }),
    ...(isAudited && { audit: createFhirAudit({ auditor, store, fhirBaseUrl: BASE }) }),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  process.on('message', () => process.send?.(process.cpuUsage()))
  process.on('disconnect', async () => {
    guard.close()
    await app.close()
    await sealing?.stop()
    await store.close()
  })
  process.send?.((app.server.address() as AddressInfo).port)
}

interface Round {
  readonly perSecond: number
  readonly cpuUs: number
  readonly p50: number
  readonly p99: number
}

interface Server {
  round(token: string): Promise<Round>
  close(): Promise<void>
}

async function measure(connections: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'audit-bench-'))
  load(join(folder, 'fhir.db'))
  const { jwk, tokens } = await createTokens('patient-1')
  const opened = await Promise.all(
    VARIANTS.map(async variant => [variant, await open(variant, folder, jwk, connections)] as const),
  )
  const servers = new Map<Variant, Server>(opened)
  const run = async (line: Line): Promise<Round> => {
    const [variant, kind] = LINES[line]
    const server = servers.get(variant)
    if (!server) throw new Error(`Cannot measure ${line}: no such server`)
    return server.round(tokens[kind])
  }
  const names = Object.keys(LINES) as Line[]
  const rounds = new Map<Line, Round[]>(names.map(name => [name, []]))
  // The first round warms up.
  for (let at = -1; at < ROUNDS; at++)
    for (const [place] of names.entries()) {
      const name = names[(place + at + 1) % names.length] ?? 'unguarded'
      const round = await run(name)
      if (at >= 0) rounds.get(name)?.push(round)
    }
  const base = rounds.get('unguarded') ?? []
  for (const [name, all] of rounds) {
    const ratio = median(all.map((it, at) => it.perSecond / (base[at]?.perSecond ?? 1)))
    process.stdout.write(
      `${name.padEnd(17)} ${median(all.map(it => it.perSecond))
        .toFixed(0)
        .padStart(6)}/s  ratio ${ratio.toFixed(2)}  ` +
        `${median(all.map(it => it.cpuUs)).toFixed(0)} us CPU  p50 ${median(all.map(it => it.p50)).toFixed(1)} ms  ` +
        `p99 ${median(all.map(it => it.p99)).toFixed(1)} ms\n`,
    )
  }
  const audited = rounds.get('audited patient/') ?? []
  const sealed = rounds.get('sealed patient/') ?? []
  const ratioOf = (value: (round: Round) => number) =>
    median(sealed.map((it, at) => value(it) / value(audited[at] ?? it))).toFixed(2)
  process.stdout.write(
    `sealed / audited: requests ${ratioOf(it => it.perSecond)}, CPU ${ratioOf(it => it.cpuUs)}, p50 ${ratioOf(it => it.p50)}, p99 ${ratioOf(it => it.p99)}\n`,
  )
  await Promise.all([...servers.values()].map(server => server.close()))
  rmSync(folder, { recursive: true })
}

async function open(variant: Variant, folder: string, jwk: string, connections: number): Promise<Server> {
  const child = fork(new URL(import.meta.url).pathname, ['serve', variant, folder, jwk])
  const [port] = (await once(child, 'message')) as [number]
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections })
  const cpu = async () => {
    child.send('cpu')
    const [{ user, system }] = (await once(child, 'message')) as [NodeJS.CpuUsage]
    return user + system
  }
  return {
    async round(token) {
      const headers = { authorization: `Bearer ${token}` }
      const times: number[] = []
      const before = await cpu()
      const began = performance.now()
      const ask = async () => {
        while (performance.now() - began < ROUND_MS) {
          const at = performance.now()
          const { statusCode, body } = await pool.request({
            method: 'GET',
            path: '/fhir/Patient/patient-1',
            headers,
          })
          await body.dump()
          if (statusCode !== 200) throw new Error(`Cannot measure ${variant}: answered with ${statusCode}`)
          times.push(performance.now() - at)
        }
      }
      await Promise.all(Array.from({ length: connections }, ask))
      const ms = performance.now() - began
      times.sort((a, b) => a - b)
      return {
        perSecond: (times.length / ms) * 1000,
        cpuUs: ((await cpu()) - before) / times.length,
        p50: times[Math.floor(times.length / 2)] ?? 0,
        p99: times[Math.floor(times.length * 0.99)] ?? 0,
      }
    },
    async close() {
      await pool.close()
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

async function createTokens(patient: string) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'bench', alg: 'RS256', use: 'sig' }
  const createToken = (context: 'patient' | 'user') =>
    new SignJWT({
      scope: `launch openid fhirUser ${['Patient', 'Condition', 'Observation'].map(type => `${context}/${type}.rs`).join(' ')}`,
      patient,
      fhirUser: 'Practitioner/practitioner-1',
      client_id: 'bench',
      jti: 'launch-1.token-1',
    })
      .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid: 'bench' })
      .setIssuer(ISSUER)
      .setAudience(BASE)
      .setSubject('clinician')
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(privateKey)
  return {
    jwk: JSON.stringify(jwk),
    tokens: { patient: await createToken('patient'), user: await createToken('user') },
  }
}

function load(dataFile: string): void {
  const repository = openRepository({ file: dataFile, baseUrl: BASE })
  repository.load(samplePatients({ count: 20, now: Date.now() }))
  repository.close()
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}
