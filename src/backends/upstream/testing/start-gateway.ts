import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openSqliteStore } from '../../../../test/support/sqlite-store.ts'
import { createAuditor, createFhirAudit } from '../../../audit/index.ts'
import { type Authenticator, fullAccess } from '../../../smart/index.ts'
import { BASE, client, createAuthenticator, type Fhir } from '../../sqlite/testing/fhir.ts'
import { createGateway, type GatewayOptions } from '../index.ts'

/** A refusal takes no longer than it has to, and a read as long as the upstream. */
export const NO_WAIT: NonNullable<GatewayOptions['conceal']> = {
  readMs: Number.POSITIVE_INFINITY,
  wait: async () => undefined,
}

export interface UpstreamProcess {
  readonly url: string
  /** Starts another server with separate data in the same process. */
  open(): Promise<string>
  /** Stops the process: it accepts connections and answers nothing until it is resumed. */
  pause(): void
  resume(): void
  end(): Promise<unknown>
}

/** The embedded server, unguarded, in a second process; in memory, or on a file. */
export async function startUpstream(dataFile?: string): Promise<UpstreamProcess> {
  const script = fileURLToPath(new URL('./upstream.ts', import.meta.url))
  const args = dataFile === undefined ? [script] : [script, dataFile]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)
  const readUrl = async () => ((await once(lines, 'line')) as [string])[0]
  return {
    url: await readUrl(),
    open: () => {
      child.stdin.write('\n')
      return readUrl()
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    end() {
      const ended = once(child, 'exit')
      child.kill()
      return ended
    },
  }
}

/** A gateway at `BASE` in front of an upstream that behaves as R4 defines, by default with access to everything for every caller. */
export async function startGateway(
  upstreamUrl: string,
  options: Partial<GatewayOptions> = {},
): Promise<Fhir> {
  const guard: Authenticator = createAuthenticator({ all: fullAccess })
  const given = { baseUrl: BASE, upstreamUrl, guard, smartConfiguration: {}, profile: 'strict' } as const
  return client(await createGateway({ ...given, conceal: NO_WAIT, ...options }))
}

/** Starts a gateway with an audit trail, as in production: then fewer requests pass through without being checked. */
export async function startRecordedGateway(
  upstreamUrl: string,
  options: Partial<GatewayOptions> = {},
): Promise<Fhir> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  const store = await openSqliteStore(`sqlite:${join(folder, 'audit.db')}`)
  const audit = createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl: BASE })
  const fhir = await startGateway(upstreamUrl, { ...options, audit })
  fhir.app.addHook('onClose', async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return fhir
}

/** Starts a gateway with an upstream of its own, which ends with it. */
export async function startGatewayWithUpstream(options: Partial<GatewayOptions> = {}): Promise<Fhir> {
  const upstream = await startUpstream()
  const fhir = await startGateway(upstream.url, options)
  fhir.app.addHook('onClose', async () => {
    await upstream.end()
  })
  return fhir
}
