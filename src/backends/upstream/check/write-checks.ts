import { type Failed, fail, isFailure, toRecord } from '../../../core/index.ts'
import {
  type Finding,
  findId,
  findIds,
  findVersion,
  isConflict,
  isOk,
  type Json,
  type Probe,
  parse,
  TAG_SYSTEM,
  toList,
} from './probe.ts'

type Checked = Omit<Finding, 'check'>
/** A patient of this run, which the checks refer to and change. */
type WriteCheck = (probe: Probe, patient: Own) => Promise<Checked>

interface Own {
  readonly path: string
  readonly version: string
}

interface NotCreated extends Failed {
  readonly status: number
}

/** A check of an Observation of its own, about the patient. */
function useObservation(check: (probe: Probe, own: Own, patient: Own) => Promise<Checked>): WriteCheck {
  return async (probe, patient) => {
    const own = await createOwn(probe, createOwnObservation(patient))
    return isFailure(own)
      ? { level: 'unknown', result: `cannot create: ${own.status}` }
      : check(probe, own, patient)
  }
}

const NO_CACHE = { 'cache-control': 'no-cache' }

/** The checks that write. Each uses resources of its own, or the patient, whose content does not matter. */
export const WRITE_CHECKS: Readonly<Record<string, WriteCheck>> = {
  'Prefer: return=minimal': checkMinimal,
  'search results': checkStaleSearches,
  'If-Match on PUT': checkIfMatch,
  'If-None-Match: * on PUT': checkIfNoneMatch,
  'create only by If-Match: W/"0"': checkVersionZero,
  'If-Match on DELETE': useObservation(checkDelete),
  'DELETE by the version in the URL': useObservation(checkVersionedDelete),
  'If-None-Exist': checkIfNoneExist,
  'conditions in a transaction': checkTransaction,
  'If-None-Exist in a transaction': checkConditionalCreate,
  'conditional references in a transaction': checkConditionalReference,
  'own absolute URL in a body': checkOwnUrlInBody,
  'own absolute URL in a search': checkOwnUrlInSearch,
  'dates by year and month': useObservation(checkDatePrecision),
  'history after a delete': useObservation(checkHistory),
  'numeric ids': checkNumericIds,
}

const PATIENT = { resourceType: 'Patient', birthDate: '1987-06-15' }

export async function createOwn(probe: Probe, resource: Json = PATIENT): Promise<Own | NotCreated> {
  const response = await probe.create(resource)
  const id = findId(response)
  if (response.status !== 201 || id === undefined) return fail({ status: response.status })
  const path = `/${resource.resourceType}/${id}`
  return { path, version: findVersion(response) ?? findVersion(await probe.get(path)) ?? '' }
}

function createObservation(subject: string): Json {
  return {
    resourceType: 'Observation',
    status: 'final',
    code: { text: 'Check of the upstream' },
    subject: { reference: subject },
    effectiveDateTime: '2026-03-01',
  }
}

function createOwnObservation({ path }: Own): Json {
  return createObservation(path.slice(1))
}

async function checkMinimal(probe: Probe): Promise<Checked> {
  const response = await probe.create(PATIENT, { prefer: 'return=minimal' })
  if (response.status !== 201) return { level: 'unknown', result: `${response.status}` }
  if (findId(response) === undefined) return { level: 'unsafe', result: 'the response does not name the id' }
  if (response.text !== '') return { level: 'ok', result: 'ignored: answered with the resource' }
  const hasType = response.headers['content-type'] !== undefined
  return { level: 'ok', result: `honoured: no body, ${hasType ? 'a' : 'no'} Content-Type` }
}

async function checkStaleSearches(probe: Probe): Promise<Checked> {
  const value = `${probe.tag}-search`
  const path = `/Patient?identifier=${TAG_SYSTEM}|${value}`
  await probe.get(path)
  await probe.create({ ...PATIENT, identifier: [{ system: TAG_SYSTEM, value }] })
  const isFound = async (headers = {}) => findIds(await probe.get(path, headers)).length === 1
  if (await isFound()) return { level: 'ok', result: 'a search finds a resource at once' }
  return (await isFound(NO_CACHE))
    ? { level: 'handled', result: 'reused for some time, unless the request has Cache-Control: no-cache' }
    : { level: 'unsafe', result: 'a new resource is not found, not even with Cache-Control: no-cache' }
}

/** Changes the patient, so that its first version is stale. */
async function makeStale(probe: Probe, { path, version }: Own): Promise<string> {
  await probe.put(path, { ...PATIENT, gender: 'other' })
  const current = findVersion(await probe.get(path))
  if (current === version) await probe.put(path, { ...PATIENT, gender: 'unknown' })
  return `W/"${version}"`
}

async function checkIfMatch(probe: Probe, patient: Own): Promise<Checked> {
  if (patient.version === '') return { level: 'unsafe', result: 'there are no versions' }
  const stale = await makeStale(probe, patient)
  const response = await probe.put(patient.path, { ...PATIENT, gender: 'male' }, { 'if-match': stale })
  if (isConflict(response)) return { level: 'ok', result: `honoured (${response.status})` }
  return { level: 'unsafe', result: `ignored (${response.status}): updates can be lost` }
}

async function checkIfNoneMatch(probe: Probe, { path }: Own): Promise<Checked> {
  const response = await probe.put(path, { ...PATIENT, gender: 'male' }, { 'if-none-match': '*' })
  if (isConflict(response) || response.status === 304)
    return { level: 'ok', result: `honoured (${response.status})` }
  return { level: 'handled', result: `ignored (${response.status}): overwrites` }
}

async function checkVersionZero(probe: Probe, { path }: Own): Promise<Checked> {
  const onlyNew = { 'if-match': 'W/"0"' }
  const present = await probe.put(path, { ...PATIENT, gender: 'male' }, onlyNew)
  const absent = await probe.put(`/Patient/check-${probe.tag}`, PATIENT, onlyNew)
  const result = `${present.status} if the resource exists, ${absent.status} if not`
  if (isConflict(present) && absent.status === 201) return { level: 'ok', result: `yes: ${result}` }
  return { level: 'handled', result: `no: ${result}` }
}

async function checkDelete(probe: Probe, own: Own): Promise<Checked> {
  const response = await probe.remove(own.path, { 'if-match': 'W/"4711"' })
  if (isConflict(response)) return { level: 'ok', result: `honoured (${response.status})` }
  return {
    level: 'handled',
    result: `ignored (${response.status}); the gateway reads afterwards which version was deleted, where the server names it`,
  }
}

/** HAPI deletes the version that the URL names if it is the current one. */
async function checkVersionedDelete(probe: Probe, own: Own, patient: Own): Promise<Checked> {
  await probe.put(own.path, { ...createOwnObservation(patient), status: 'amended' })
  const current = findVersion(await probe.get(own.path))
  const stale = await probe.remove(`${own.path}/_history/${own.version}`)
  const fresh = await probe.remove(`${own.path}/_history/${current}`)
  const { status } = await probe.get(own.path)
  await probe.remove(own.path)
  const result = `${stale.status} for an old version, ${fresh.status} for the current one`
  return isConflict(stale) && isOk(fresh) && (status === 410 || status === 404)
    ? { level: 'ok', result: `yes: ${result}` }
    : { level: 'handled', result: `no: ${result}` }
}

async function checkIfNoneExist(probe: Probe): Promise<Checked> {
  const value = `${probe.tag}-exist`
  const headers = { 'if-none-exist': `identifier=${TAG_SYSTEM}|${value}` }
  const patient = { ...PATIENT, identifier: [{ system: TAG_SYSTEM, value }] }
  const first = await probe.create(patient, headers)
  const second = await probe.create(patient, headers)
  const result = `${first.status}, then ${second.status}`
  return second.status === 200
    ? { level: 'ok', result }
    : { level: 'handled', result: `${result}: not honoured` }
}

/** A transaction with a stale version must fail as a whole. */
async function checkTransaction(probe: Probe, patient: Own): Promise<Checked> {
  const request = { method: 'PUT', url: patient.path.slice(1), ifMatch: `W/"${patient.version}"` }
  const resource = { ...PATIENT, id: patient.path.split('/')[2], gender: 'female' }
  const response = await probe.transaction([{ resource, request }])
  if (isOk(response)) return { level: 'unsafe', result: `ignored (${response.status}): updates can be lost` }
  return isConflict(response)
    ? { level: 'ok', result: `honoured (${response.status})` }
    : { level: 'handled', result: `transactions are not supported (${response.status})` }
}

async function checkConditionalCreate(probe: Probe): Promise<Checked> {
  const value = `${probe.tag}-transaction`
  const ifNoneExist = `identifier=${TAG_SYSTEM}|${value}`
  const resource = { ...PATIENT, identifier: [{ system: TAG_SYSTEM, value }] }
  const send = async () => {
    const entry = { resource, request: { method: 'POST', url: 'Patient', ifNoneExist } }
    const [found] = toList(parse(await probe.transaction([entry])).entry)
    return String(toRecord(found?.response).status).slice(0, 3)
  }
  const result = `${await send()}, then ${await send()}`
  return result === '201, then 200'
    ? { level: 'ok', result }
    : { level: 'handled', result: `${result}: not honoured` }
}

async function checkConditionalReference(probe: Probe): Promise<Checked> {
  const value = `${probe.tag}-reference`
  await probe.create({ ...PATIENT, identifier: [{ system: TAG_SYSTEM, value }] })
  const resource = createObservation(`Patient?identifier=${TAG_SYSTEM}|${value}`)
  const response = await probe.transaction([{ resource, request: { method: 'POST', url: 'Observation' } }])
  const [entry] = toList(parse(response).entry)
  const isMade = isOk(response) && String(toRecord(entry?.response).status).startsWith('201')
  return isMade
    ? { level: 'ok', result: 'resolved' }
    : { level: 'handled', result: `not resolved (${response.status}); the gateway resolves them` }
}

async function checkOwnUrlInBody(probe: Probe, { path }: Own): Promise<Checked> {
  const response = await probe.create(createObservation(probe.baseUrl + path))
  return isOk(response)
    ? { level: 'ok', result: 'accepted' }
    : { level: 'handled', result: `${response.status}; the gateway sends Type/id` }
}

async function checkOwnUrlInSearch(probe: Probe, patient: Own): Promise<Checked> {
  await probe.create(createOwnObservation(patient))
  const count = async (subject: string) => findIds(await probe.search('Observation', { subject })).length
  const byId = await count(patient.path.slice(1))
  const byUrl = await count(probe.baseUrl + patient.path)
  if (byId === 0) return { level: 'unsafe', result: 'a search by subject does not find the resource' }
  return byUrl === byId
    ? { level: 'ok', result: 'means the local resource' }
    : { level: 'handled', result: 'finds nothing; the gateway sends Type/id' }
}

async function checkDatePrecision(probe: Probe, own: Own): Promise<Checked> {
  const id = own.path.split('/')[2] ?? ''
  const missed: string[] = []
  for (const date of ['2026', 'ge2026', 'le2026', '2026-03', 'ge2026-03', 'le2026-03', 'ge2026-03-01'])
    if (!findIds(await probe.search('Observation', { _id: id, date })).includes(id)) missed.push(date)
  return missed.length === 0
    ? { level: 'ok', result: 'as in R4' }
    : {
        level: 'handled',
        result: `2026-03-01 is not found by ${missed.join(', ')}; the gateway evaluates these`,
      }
}

async function checkHistory(probe: Probe, own: Own): Promise<Checked> {
  const history = async () =>
    toList(parse(await probe.get(`${own.path}/_history?_count=2`, NO_CACHE)).entry).length
  await history()
  await probe.remove(own.path)
  const [versions, { status }] = [await history(), await probe.get(own.path)]
  const result = `${versions} of 2 versions; a read answers ${status}`
  return versions === 2 && status === 410 ? { level: 'ok', result } : { level: 'handled', result }
}

async function checkNumericIds(probe: Probe): Promise<Checked> {
  const id = String(Number.parseInt(probe.tag.replaceAll('-', '').slice(0, 12), 16))
  const response = await probe.put(`/Patient/${id}`, PATIENT)
  return isOk(response)
    ? { level: 'ok', result: 'accepted' }
    : { level: 'handled', result: `refused (${response.status}); on HAPI set client_id_strategy: ANY` }
}
