import { randomUUID } from 'node:crypto'
import { isFailure, toRecord } from '../../../core/index.ts'
import { type ChosenProfile, chooseProfile, type ProfileName } from '../profile.ts'
import { createUnknownPath, findSignOfHapi } from '../recognize/recognition.ts'
import { createProbe, type Finding, findIds, isOk, type Probe, parse, type Send } from './probe.ts'
import { createOwn, WRITE_CHECKS } from './write-checks.ts'

interface CheckOptions {
  readonly send: Send
  /** The FHIR base URL of the upstream. */
  readonly baseUrl: string
  /** Whether resources may be created. They have a tag of their own, and are deleted afterwards. */
  readonly isWriting: boolean
}

export interface UpstreamReport {
  readonly software: string
  /** By what the server is recognized as HAPI. */
  readonly sign: string | undefined
  readonly findings: readonly Finding[]
  /** Resources of this run that could not be deleted. */
  readonly left: readonly string[]
}

/** Tries everything that the gateway relies on. */
export async function checkUpstream({ send, baseUrl, isWriting }: CheckOptions): Promise<UpstreamReport> {
  const probe = createProbe(send, baseUrl, randomUUID())
  const recognized = { software: await findSoftware(probe), sign: await findSign(probe) }
  try {
    const written = isWriting ? await runWriteChecks(probe) : skipWriteChecks('needs --write')
    const findings = [...(await runReadChecks(probe)), ...written]
    return { ...recognized, findings, left: await probe.cleanUp() }
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
  if (isFailure(patient)) return skipWriteChecks(`cannot create a Patient: ${patient.status}`)
  const findings: Finding[] = []
  for (const [check, run] of Object.entries(WRITE_CHECKS))
    findings.push({ check, ...(await run(probe, patient)) })
  return findings
}

function skipWriteChecks(result: string): readonly Finding[] {
  return Object.keys(WRITE_CHECKS).map(check => ({ check, level: 'unknown', result }))
}

type Checked = Omit<Finding, 'check'>

/** The checks that only read. */
const READ_CHECKS: Readonly<Record<string, (probe: Probe) => Promise<Checked>>> = {
  'FHIR version': checkVersion,
  'metadata: size and time': checkMetadata,
  'metadata: cheap requests': checkCheapRequests,
  'POST _search': checkPostSearch,
  'compartment searches': checkCompartments,
  'two lower bounds of a date': checkTwoDates,
}

async function checkVersion(probe: Probe): Promise<Checked> {
  const response = await probe.get('/metadata?_elements=status,fhirVersion')
  const { resourceType, fhirVersion } = parse(response)
  if (response.status === 403)
    return { level: 'unknown', result: 'metadata is refused (403); the gateway needs R4 (4.0.1)' }
  if (resourceType !== 'CapabilityStatement')
    return { level: 'unsafe', result: `metadata answers ${response.status} without a CapabilityStatement` }
  if (typeof fhirVersion !== 'string')
    return { level: 'unknown', result: 'not in the CapabilityStatement; the gateway needs R4 (4.0.1)' }
  return fhirVersion.startsWith('4.0')
    ? { level: 'ok', result: fhirVersion }
    : { level: 'unsafe', result: `${fhirVersion}; the gateway needs R4 (4.0.1)` }
}

async function checkMetadata(probe: Probe): Promise<Checked> {
  const { status, text, milliseconds } = await probe.get('/metadata')
  if (status === 403)
    return { level: 'handled', result: '403; the gateway recognizes the server by other responses' }
  const result = `${text.length.toLocaleString('en')} characters in ${Math.round(milliseconds)} ms`
  return { level: 'ok', result }
}

async function checkCheapRequests(probe: Probe): Promise<Checked> {
  const head = await probe.head('/metadata')
  if (isOk(head)) return { level: 'ok', result: `HEAD in ${Math.round(head.milliseconds)} ms` }
  const count = await probe.get('/Patient?_summary=count&_count=0')
  return isOk(count)
    ? { level: 'ok', result: `no HEAD (${head.status}); a count in ${Math.round(count.milliseconds)} ms` }
    : { level: 'handled', result: 'neither HEAD nor a count; the gateway reads metadata every 5 s' }
}

async function checkPostSearch(probe: Probe): Promise<Checked> {
  const { status } = await probe.search('Patient', { _count: '1' })
  return status === 200
    ? { level: 'ok', result: 'supported' }
    : { level: 'unsafe', result: `${status}; searches for many patients fail` }
}

async function checkCompartments(probe: Probe): Promise<Checked> {
  const [id] = findIds(await probe.get('/Patient?_count=1'))
  if (id === undefined) return { level: 'unknown', result: 'there is no patient' }
  const { status } = await probe.get(`/Patient/${id}/Observation?_count=1`)
  return status === 200
    ? { level: 'ok', result: 'supported' }
    : { level: 'handled', result: `${status}; the gateway sends search parameters` }
}

async function checkTwoDates(probe: Probe): Promise<Checked> {
  const response = await probe.get('/Observation?date=ge2020-01-01&date=ge2020-01-02&_count=1')
  return isOk(response)
    ? { level: 'ok', result: 'accepted' }
    : { level: 'handled', result: `${response.status}; the gateway sends one and checks the other` }
}

/** Software and its version, as the CapabilityStatement names them. */
async function findSoftware(probe: Probe): Promise<string> {
  const { software } = parse(await probe.get('/metadata'))
  const { name, version } = toRecord(software)
  if (typeof name !== 'string') return 'unnamed software'
  return typeof version === 'string' ? `${name} ${version}` : name
}

/** Recognizes the server as the gateway does. */
async function findSign(probe: Probe): Promise<string | undefined> {
  for (const path of ['/metadata', createUnknownPath()]) {
    const response = await probe.get(path)
    const sign = findSignOfHapi({ headers: response.headers, body: parse(response) })
    if (sign !== undefined) return sign
  }
  return undefined
}

export interface Recommendation {
  readonly setting: string
  readonly inEffect: string
  readonly recommended: string
  /** Why the value in effect is unsafe. */
  readonly unsafe?: string
}

/** The settings in effect, by name. */
interface Settings {
  readonly 'upstream-narrowing': string
  readonly 'upstream-profile': ProfileName
  readonly 'upstream-search-cache': string
}

export function recommendSettings(
  report: Pick<UpstreamReport, 'sign' | 'findings'>,
  settings: Settings,
): readonly Recommendation[] {
  const { sign, findings } = report
  const isLevel = (level: Finding['level'], ...checks: readonly string[]) =>
    findings.some(it => checks.includes(it.check) && it.level === level)
  return [
    {
      setting: 'smart.fhir.upstream-profile',
      inEffect: settings['upstream-profile'],
      recommended: recommendProfile(report, isLevel),
      ...findUnsafeProfile(chooseProfile(settings['upstream-profile'], sign), report, isLevel),
    },
    {
      setting: 'smart.fhir.upstream-narrowing',
      inEffect: settings['upstream-narrowing'],
      recommended: isLevel('handled', 'compartment searches') ? 'parameter' : 'auto',
      ...(settings['upstream-narrowing'] === 'compartment' &&
        isLevel('handled', 'compartment searches') && { unsafe: 'limited searches fail' }),
    },
    {
      setting: 'smart.fhir.upstream-search-cache',
      inEffect: settings['upstream-search-cache'],
      recommended: 'bypass',
    },
  ]
}

type IsLevel = (level: Finding['level'], ...checks: readonly string[]) => boolean

const CREATE_ONLY = 'If-None-Match: * on PUT'
const VERSION_ZERO = 'create only by If-Match: W/"0"'
const VERSION_IN_URL = 'DELETE by the version in the URL'
/** What R4 does not ask of a server. It needs every other check to be a server that behaves as R4 defines. */
const NOT_OF_R4: ReadonlySet<string> = new Set([
  'metadata: size and time',
  'metadata: cheap requests',
  VERSION_ZERO,
  VERSION_IN_URL,
  'numeric ids',
])

/** `auto` where it chooses the right profile by itself. */
function recommendProfile(
  { sign, findings }: Pick<UpstreamReport, 'sign' | 'findings'>,
  isLevel: IsLevel,
): ProfileName {
  const onlyZero = isLevel('handled', CREATE_ONLY) && isLevel('ok', VERSION_ZERO)
  const isHapi = sign !== undefined || onlyZero
  if (isHapi && !isLevel('handled', VERSION_ZERO, VERSION_IN_URL)) return 'hapi'
  if (findings.every(({ check, level }) => level === 'ok' || NOT_OF_R4.has(check))) return 'strict'
  if (isLevel('ok', CREATE_ONLY)) return 'if-none-match'
  return sign !== undefined && isLevel('handled', CREATE_ONLY) ? 'post-only' : 'auto'
}

function findUnsafeProfile(
  { name, traits: { createOnlyPut, boundDelete } }: ChosenProfile,
  { findings }: Pick<UpstreamReport, 'findings'>,
  isLevel: IsLevel,
): { readonly unsafe?: string } {
  const differs = findings.some(({ check, level }) => level === 'handled' && !NOT_OF_R4.has(check))
  if (name === 'strict' && differs) return { unsafe: 'the upstream differs from R4' }
  if (createOnlyPut !== 'none' && isLevel('handled', CREATE_CHECKS[createOnlyPut]))
    return { unsafe: 'a PUT can overwrite a resource that another client creates at the same time' }
  if (boundDelete === 'version-in-url' && isLevel('handled', VERSION_IN_URL))
    return { unsafe: 'a DELETE can delete a version that another client writes at the same time' }
  return {}
}

const CREATE_CHECKS = { 'if-none-match': CREATE_ONLY, 'if-match-zero': VERSION_ZERO } as const
