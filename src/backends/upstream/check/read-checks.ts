import { type Finding, findIds, isOk, type Probe, parse, recordOf } from './probe.ts'

type Checked = Omit<Finding, 'check'>

/** The checks that only read. */
export const READ_CHECKS: Readonly<Record<string, (probe: Probe) => Promise<Checked>>> = {
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
  if (resourceType !== 'CapabilityStatement')
    return { level: 'unsafe', result: `metadata answers ${response.status} without a CapabilityStatement` }
  if (typeof fhirVersion !== 'string')
    return { level: 'unknown', result: 'not in the CapabilityStatement; the gateway needs R4 (4.0.1)' }
  return fhirVersion.startsWith('4.0')
    ? { level: 'ok', result: fhirVersion }
    : { level: 'unsafe', result: `${fhirVersion}; the gateway needs R4 (4.0.1)` }
}

async function checkMetadata(probe: Probe): Promise<Checked> {
  const { text, milliseconds } = await probe.get('/metadata')
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
export async function findSoftware(probe: Probe): Promise<string> {
  const { software } = parse(await probe.get('/metadata'))
  const { name, version } = recordOf(software)
  if (typeof name !== 'string') return 'unnamed software'
  return typeof version === 'string' ? `${name} ${version}` : name
}
