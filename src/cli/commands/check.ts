import { X509Certificate } from 'node:crypto'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { dirname, join } from 'node:path'
import type { Send } from '../../backends/upstream/index.ts'
import {
  type Configuration,
  describeProvider,
  findSecurityWarnings,
  type LoginProvider,
  readConfiguration,
  type Settings,
  SettingsError,
} from '../../config/index.ts'
import { DAY_MS, describeError, fail, formatCount, HOW, isFailure, parseJson } from '../../core/index.ts'
import type { Store } from '../../store/index.ts'
import { type Command, formatColumns, type Io, isSet, printJson } from '../command.ts'
import { readFeedTls, readPolicy, readTls, readTrustedIssuers, readUpstreamTls } from '../start/files.ts'
import { describeReason } from '../start/reporting-fetch.ts'
import { getStoreOptions } from '../with-store.ts'
import { withClient } from './check-upstream.ts'

/** A certificate that expires sooner is a problem. */
const CERTIFICATE_DAYS = 14
const checkCommand: Command = {
  busy: 'Checking',
  usage: `
Usage: ${HOW} check [--strict] [--json]

Validates an installation without changing it, whether the servers run or not: the settings and the files that they name,
certificates (key, expiry, host names), the database, the folder of the FHIR data, the secret, the sign-in providers and the upstream FHIR server. Prints a line
for each, and every problem with its remedy.

Options:
  --strict  exit with 1 for a warning too, for pipelines
  --json    print JSON: an array of objects with level (ok, warning or problem), subject and text

Exit code: 0 without problems, otherwise 1. With --strict: 0 without problems and warnings.

See also: check upstream, which tests a FHIR server in detail.`,
  async run(args, io) {
    const findings = await checkSetup(io)
    const problems = countLevel(findings, 'problem')
    const warnings = isSet(args, 'strict') ? countLevel(findings, 'warning') : 0
    if (isSet(args, 'json')) printJson(io, findings)
    else printFindings(io, findings, { problem: problems, warning: warnings })
    return problems + warnings > 0 ? 1 : 0
  },
}

function countLevel(findings: readonly Finding[], wanted: Finding['level']): number {
  return findings.filter(({ level }) => level === wanted).length
}

/** `counted`: why the exit code is 1. */
function printFindings(
  io: Io,
  findings: readonly Finding[],
  counted: Readonly<Record<string, number>>,
): void {
  io.stdout.write(`${formatColumns(findings.map(it => [it.level, it.subject, it.text]))}\n`)
  const causes = Object.entries(counted).flatMap(([noun, count]) =>
    count > 0 ? formatCount(count, noun) : [],
  )
  if (causes.length > 0) io.stdout.write(`\n${causes.join(', ')}\n`)
}

interface Finding {
  readonly level: 'ok' | 'warning' | 'problem'
  readonly subject: string
  readonly text: string
}

function makeFinding(level: Finding['level'], subject: string) {
  return (text: string): Finding => ({ level, subject, text })
}

async function checkSetup(io: Io): Promise<readonly Finding[]> {
  const read = readOrFail(io)
  if (isFailure(read)) return read.findings
  const { settings } = read
  const checks = [
    checkDatabase(settings),
    ...settings.login.providers.map(checkSignIn),
    ...(settings.fhir.upstreamUrl === undefined ? [] : [checkUpstream(settings, settings.fhir.upstreamUrl)]),
  ]
  return [
    ...describeSettings(read),
    ...checkFiles(settings),
    ...checkCertificate(settings, Date.now()),
    ...(await Promise.all(checks)).flat(),
    ...(settings.fhir.upstreamUrl === undefined ? [checkResources(settings)] : []),
  ]
}

function readOrFail(io: Io) {
  try {
    return readConfiguration(io.env, io.cwd)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    return fail({ findings: error.problems.map(makeFinding('problem', 'settings')) })
  }
}

function describeSettings({
  settings,
  problems,
  warnings,
  startWarnings,
}: Configuration): readonly Finding[] {
  return [
    ...problems.map(problem => makeFinding('problem', 'settings')(`The servers do not start: ${problem}.`)),
    ...[...warnings, ...startWarnings].map(makeFinding('warning', 'settings')),
    ...findSecurityWarnings(settings).map(({ text }) => makeFinding('warning', 'security')(text)),
    ...(problems.length === 0 ? [makeFinding('ok', 'settings')('The settings are valid.')] : []),
  ]
}

/** Reads the files as a start does. */
function checkFiles(settings: Settings): readonly Finding[] {
  const { fhir, auditFeeds } = settings
  const files = [
    ['policy', fhir.policyFile, () => readPolicy(settings)],
    ['trusted issuers', fhir.trustedIssuersFile, () => readTrustedIssuers(settings)],
    [
      'upstream certificate',
      fhir.upstream.tlsCert ?? fhir.upstream.tlsCa,
      () => readUpstreamTls(fhir.upstream),
    ],
    ['audit certificate', auditFeeds.tlsCert ?? auditFeeds.tlsCa, () => readFeedTls(auditFeeds)],
  ] as const
  return files.flatMap(([subject, path, read]) => (path === undefined ? [] : [tryRead(subject, path, read)]))
}

function tryRead(subject: string, path: string, read: () => unknown): Finding {
  try {
    read()
    return makeFinding('ok', subject)(`${path} is valid.`)
  } catch (error) {
    return makeFinding('problem', subject)(`${getMessage(error)}. Correct the file or its setting.`)
  }
}

function checkCertificate(settings: Settings, now: number): readonly Finding[] {
  const subject = 'certificate'
  try {
    const tls = readTls(settings)
    if (!tls) return []
    const problems = listCertificateProblems(new X509Certificate(tls.cert), settings, now)
    return problems.length > 0
      ? problems.map(makeFinding('problem', subject))
      : [makeFinding('ok', subject)('The certificate matches its key and the host names of the servers.')]
  } catch (error) {
    const text = `${getMessage(error)}. Set SMART_TLS_CERT and SMART_TLS_KEY to a certificate and its own key.`
    return [makeFinding('problem', subject)(text)]
  }
}

function listCertificateProblems(
  certificate: X509Certificate,
  { issuerUrl, fhirBaseUrl, appUrl }: Settings,
  now: number,
): readonly string[] {
  const from = certificate.validFromDate
  const to = certificate.validToDate
  const day = to.toISOString().slice(0, 10)
  const hosts = new Set([issuerUrl, fhirBaseUrl, appUrl].map(url => new URL(url).hostname))
  const replace = 'Replace the files of SMART_TLS_CERT and SMART_TLS_KEY.'
  return [
    ...(to.getTime() <= now ? [`The certificate expired on ${day}. ${replace}`] : []),
    ...(to.getTime() > now && to.getTime() - now < CERTIFICATE_DAYS * DAY_MS
      ? [`The certificate expires on ${day}, within ${CERTIFICATE_DAYS} days. ${replace}`]
      : []),
    ...(from.getTime() > now ? ['The certificate is not yet valid. Check the clock, or wait.'] : []),
    ...[...hosts]
      .filter(host => !isFor(certificate, host.replace(/^\[(.*)\]$/, '$1')))
      .map(host => `The certificate does not cover ${host}. Request one with that name, or correct the URL.`),
  ]
}

function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined
}

/** Opens the database without migrating it. */
async function checkDatabase(settings: Settings): Promise<readonly Finding[]> {
  const subject = 'database'
  const { inspectDatabase } = await import('../../store/index.ts')
  try {
    const { isNew, pending, ...found } = await inspectDatabase(
      settings.databaseUrl,
      getStoreOptions(settings),
    )
    await using store = found.store
    if (!store) return [checkNewDatabase(settings)]
    if (isNew) return [makeFinding('ok', subject)('The first start creates the tables.')]
    if (pending.length > 0)
      return [
        makeFinding('ok', subject)(`The next start applies ${pending.length} migrations; back up first.`),
      ]
    await store.ping()
    return [
      makeFinding('ok', subject)('The database accepts writes.'),
      ...(await checkSecret(settings, store)),
      ...(await checkMadeForLoopback(settings, store)),
    ]
  } catch (error) {
    const advice = 'Check SMART_DATABASE_URL, and whether the database runs and accepts this user.'
    return [makeFinding('problem', subject)(`${getMessage(error)}. ${advice}`)]
  }
}

/** The first start creates it. */
function checkNewDatabase({ databaseUrl }: Settings): Finding {
  const folder = findFolder(databaseUrl.replace(/^sqlite:/, ''))
  if (isWritable(folder)) return makeFinding('ok', 'database')('The first start creates the database.')
  const text = `The first start cannot create the database: ${folder} is not a folder that this user can write. Set SMART_DATA_DIR to one.`
  return makeFinding('problem', 'database')(text)
}

/** The FHIR resources of the embedded server are in a file of their own, also when PostgreSQL has everything else. */
function checkResources({ dataDir }: Settings): Finding {
  const subject = 'FHIR data'
  const file = join(dataDir, 'fhir.db')
  const folder = findFolder(file)
  // SQLite writes further files into the folder.
  if (!isWritable(folder))
    return makeFinding(
      'problem',
      subject,
    )(`${folder} is not a folder that this user can write. Set SMART_DATA_DIR to one.`)
  if (existsSync(file) && !canWrite(file))
    return makeFinding('problem', subject)(`This user cannot write ${file}. Correct its owner or its mode.`)
  return makeFinding('ok', subject)('The folder accepts writes.')
}

/** The nearest folder above a file that exists: a start creates those below it. */
function findFolder(file: string): string {
  let folder = dirname(file)
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder)
  return folder
}

function isWritable(folder: string): boolean {
  return canWrite(folder) && statSync(folder).isDirectory()
}

function canWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

async function checkMadeForLoopback(settings: Settings, store: Store): Promise<readonly Finding[]> {
  const { describeMadeForLoopback } = await import('../../auth/index.ts')
  const text = await describeMadeForLoopback(store, settings)
  return text === undefined ? [] : [makeFinding('warning', 'public URL')(text)]
}

async function checkSecret({ secret }: Settings, store: Store): Promise<readonly Finding[]> {
  if (secret === undefined) return []
  const { canOpenSigningKeys } = await import('../../auth/index.ts')
  const { createSealer } = await import('../../store/index.ts')
  if (await canOpenSigningKeys(store, createSealer(secret)))
    return [makeFinding('ok', 'secret')('The secret decrypts the signing keys.')]
  const text =
    'SMART_SECRET does not decrypt the signing keys of this database. Set the secret that encrypted them, or replace all keys: keys withdraw --all.'
  return [makeFinding('problem', 'secret')(text)]
}

async function checkSignIn(provider: LoginProvider): Promise<readonly Finding[]> {
  const subject = `sign-in ${provider.id}`
  const { url, works } = describeProvider(provider)
  const { checkProvider } = await import('../../auth/index.ts')
  try {
    await checkProvider(provider)
    return [makeFinding('ok', subject)(works)]
  } catch (error) {
    return [makeFinding('problem', subject)(`Cannot use ${url}: ${describeReason(error)}.`)]
  }
}

async function checkUpstream(settings: Settings, baseUrl: string): Promise<readonly Finding[]> {
  try {
    return await withClient(baseUrl, settings, send => describeUpstream(settings, baseUrl, send))
  } catch (error) {
    const advice = 'Check SMART_FHIR_UPSTREAM_URL, the network and the certificate authority.'
    return [makeFinding('problem', 'upstream')(`${getMessage(error)}. ${advice}`)]
  }
}

async function describeUpstream(
  { fhir }: Settings,
  baseUrl: string,
  send: Send,
): Promise<readonly Finding[]> {
  const { chooseProfile, createUnknownPath, describeProfile, findSignOfHapi } = await import(
    '../../backends/upstream/index.ts'
  )
  const get = (path: string) => send({ method: 'GET', path, headers: { accept: 'application/fhir+json' } })
  const metadata = await get('/metadata')
  const absent = await get(createUnknownPath())
  const finding = describeMetadata(baseUrl, metadata, absent.status)
  if (finding.level === 'problem') return [finding]
  const signs = [metadata, absent].map(({ headers, text }) =>
    findSignOfHapi({ headers, body: parseJson(text) }),
  )
  const profile = chooseProfile(
    fhir.upstream.profile,
    signs.find(sign => sign !== undefined),
  )
  const text = `In use: ${describeProfile(profile)}.`
  return [finding, makeFinding('ok', 'upstream')(text)]
}

/** A proxy may refuse `metadata` alone: `other` is the status of another request. */
function describeMetadata(
  baseUrl: string,
  { status, text }: { readonly status: number; readonly text: string },
  other: number,
): Finding {
  const problem = makeFinding('problem', 'upstream')
  if (other === 401 || other === 403) {
    const refused = other === 401 ? 'credentials' : 'requests'
    return problem(
      `${baseUrl} refuses the ${refused} of the gateway (${other}). Check SMART_FHIR_UPSTREAM_AUTH.`,
    )
  }
  if (status === 401 || status === 403)
    return makeFinding(
      'warning',
      'upstream',
    )(
      `${baseUrl}/metadata is refused (${status}), other requests are not. Let the gateway read it: apps get a 502 for metadata.`,
    )
  if (status !== 200)
    return problem(`${baseUrl}/metadata returns ${status}. Set SMART_FHIR_UPSTREAM_URL to the FHIR base URL.`)
  const release = /"fhirVersion"\s*:\s*"([^"]*)"/.exec(text)?.[1]
  if (release === undefined)
    return problem(
      `${baseUrl}/metadata is not a CapabilityStatement. Set SMART_FHIR_UPSTREAM_URL to the FHIR base URL.`,
    )
  return release.startsWith('4.0')
    ? makeFinding('ok', 'upstream')('The upstream is a FHIR R4 server.')
    : problem(`${baseUrl} has FHIR version ${release}. The gateway needs 4.0.`)
}

function getMessage(error: unknown): string {
  return describeError(error).replace(/\.$/, '')
}

export const commands = { check: checkCommand }
