import { randomUUID } from 'node:crypto'
import { createProbe, type Finding, type Probe, type Send } from './probe.ts'
import { findSoftware, READ_CHECKS } from './read-checks.ts'
import { createOwn, WRITE_CHECKS } from './write-checks.ts'

export interface CheckOptions {
  readonly send: Send
  /** The FHIR base URL of the upstream. */
  readonly baseUrl: string
  /** Whether resources may be created. They have a tag of their own, and are deleted afterwards. */
  readonly isWriting: boolean
}

export interface UpstreamReport {
  readonly software: string
  readonly findings: readonly Finding[]
  /** Resources of this run that could not be deleted. */
  readonly left: readonly string[]
}

/** Tries everything that the gateway relies on. */
export async function checkUpstream({ send, baseUrl, isWriting }: CheckOptions): Promise<UpstreamReport> {
  const probe = createProbe(send, baseUrl, randomUUID())
  const software = await findSoftware(probe)
  try {
    const written = isWriting ? await runWriteChecks(probe) : skipWriteChecks('needs --write')
    return { software, findings: [...(await runReadChecks(probe)), ...written], left: await probe.cleanUp() }
  } catch (error) {
    await probe.cleanUp()
    throw error
  }
}

async function runReadChecks(probe: Probe): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const [check, run] of Object.entries(READ_CHECKS)) findings.push({ check, ...(await run(probe)) })
  return findings
}

async function runWriteChecks(probe: Probe): Promise<readonly Finding[]> {
  const patient = await createOwn(probe)
  if (!('path' in patient)) return skipWriteChecks(`cannot create a Patient: ${patient.status}`)
  const findings: Finding[] = []
  for (const [check, run] of Object.entries(WRITE_CHECKS))
    findings.push({ check, ...(await run(probe, patient)) })
  return findings
}

function skipWriteChecks(result: string): readonly Finding[] {
  return Object.keys(WRITE_CHECKS).map(check => ({ check, level: 'unknown', result }))
}
