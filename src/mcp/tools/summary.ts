import { Type } from 'typebox'
import { isFailure } from '../../core/index.ts'
import { Members } from '../../endpoint/index.ts'
import { isId } from '../../fhir/index.ts'
import { computeAge, formatDeath, formatName, formatSex, readPerson } from '../../web/person/index.ts'
import { mayUse } from '../grants.ts'
import { SUMMARY_CHARACTERS } from '../limits.ts'
import { describeRow, formatRow, listRecords, shorten } from '../rows.ts'
import { type Call, defineTool, type FhirJson, failCall } from '../tool.ts'

interface Section {
  readonly title: string
  readonly type: string
  readonly query: string
  /** The most lines of the section. */
  readonly most: number
  /** Only the latest of each code. */
  readonly isLatest?: true
}

const SECTIONS: readonly Section[] = [
  { title: 'Allergies', type: 'AllergyIntolerance', query: 'clinical-status=active', most: 10 },
  { title: 'Problems', type: 'Condition', query: 'clinical-status=active,recurrence,relapse', most: 12 },
  { title: 'Medicines', type: 'MedicationRequest', query: 'status=active,on-hold', most: 12 },
  {
    title: 'Latest vital signs',
    type: 'Observation',
    query: 'category=vital-signs&_sort=-date',
    most: 8,
    isLatest: true,
  },
  {
    title: 'Latest results',
    type: 'Observation',
    query: 'category=laboratory&_sort=-date',
    most: 12,
    isLatest: true,
  },
  { title: 'Encounters', type: 'Encounter', query: '_sort=-date', most: 4 },
]

export const summary = defineTool({
  name: 'get_patient_summary',
  title: 'Summarize the patient',
  description:
    'Returns who the patient is, with active allergies, problems and medicines, the latest vital signs and results, and the last encounters. Begin with it.',
  input: Members({
    patient: Type.Optional(
      Type.String({ description: 'Id of the patient, if your access is not limited to one' }),
    ),
  }),
  output: Members({
    patient: Type.Record(Type.String(), Type.String()),
    sections: Type.Array(
      Members({
        title: Type.String(),
        lines: Type.Array(Type.String()),
        more: Type.Optional(Type.String({ description: 'What is not shown, and why' })),
      }),
    ),
  }),
  isUsableBy: grant => mayUse(grant, 'r'),
  async call(call, { patient = call.grant.patient }) {
    if (patient === undefined || !isId(patient)) return failCall('Send the id of the patient in patient.')
    const resource = await call.fetch(`/Patient/${patient}`)
    const isRefused = isFailure(resource)
    if (isRefused && resource.reason === 'misused') return resource
    const sections = await Promise.all(SECTIONS.map(section => readSection(call, patient, section)))
    if (!isRefused) return shortenSections(describePerson(resource, call.now), sections)
    // All scopes of the call are named at once, so that the person is asked once.
    const scopes = [...resource.scopes, ...sections.flatMap(it => it.lacking ?? [])]
    return { ...resource, scopes: [...new Set(scopes)] }
  },
})

function describePerson(resource: FhirJson, now: number): Readonly<Record<string, string>> {
  const person = readPerson({ resourceType: 'Patient', ...resource })
  const death = formatDeath(person)
  return {
    name: shorten(formatName(person.name)),
    born: person.born ?? 'not recorded',
    age: computeAge(person, now),
    sex: formatSex(person.gender),
    ...(person.mrn !== undefined && { mrn: shorten(person.mrn) }),
    ...(death !== undefined && { death }),
    reference: `Patient/${person.id}`,
  }
}

interface Listed {
  readonly title: string
  readonly lines: readonly string[]
  readonly more?: string
  /** The scopes that it would need. */
  readonly lacking?: readonly string[]
}

async function readSection(call: Call, patient: string, section: Section): Promise<Listed> {
  const { title, type, query, most, isLatest } = section
  const page = await call.search(`/${type}?patient=${patient}&${query}&_count=${isLatest ? 100 : most}`)
  if (isFailure(page)) {
    if (page.reason === 'misused') return { title, lines: [], more: page.text }
    const { scopes } = page
    return { title, lines: [], more: `Not allowed: the access lacks ${scopes.join(' ')}.`, lacking: scopes }
  }
  const { resources, total, next, notes } = page
  const chosen = isLatest ? chooseLatest(resources) : resources
  const lines = chosen.slice(0, most).map(it => formatRow(describeRow(it)))
  const hidden = Math.max(chosen.length, isLatest ? 0 : (total ?? 0)) - lines.length
  const rest =
    hidden > 0 ? `${hidden} more: search ${type}.` : next === undefined ? '' : `More: search ${type}.`
  const more = [rest, ...notes].filter(it => it !== '').join(' ')
  return { title, lines, ...(more !== '' && { more }) }
}

/** The first of each code: the search sorts by date. */
function chooseLatest(resources: readonly FhirJson[]): readonly FhirJson[] {
  const seen = new Set<string>()
  return resources.filter(({ code, id }) => {
    const [coding] = listRecords((code as FhirJson | undefined)?.coding)
    const key = coding ? `${coding.system}|${coding.code}` : String(id)
    return !seen.has(key) && seen.add(key)
  })
}

/** Leaves out the last lines of the longest sections until the text is short enough. */
function shortenSections(patient: Readonly<Record<string, string>>, listed: readonly Listed[]) {
  const sections = listed.map(section => ({ ...section, lines: [...section.lines], cut: 0 }))
  const say = () => sections.map(section => addCut(section, section.cut))
  let text = formatSummary(patient, say())
  while (text.length > SUMMARY_CHARACTERS) {
    const longest = sections.toSorted((a, b) => b.lines.length - a.lines.length)[0]
    if (!longest || longest.lines.length === 0) break
    longest.lines.pop()
    longest.cut += 1
    text = formatSummary(patient, say())
  }
  return { content: { patient, sections: say() }, text }
}

function addCut({ title, lines, more }: Listed, cut: number) {
  const said = [cut > 0 ? `${cut} left out for length.` : '', more ?? ''].filter(it => it !== '').join(' ')
  return { title, lines: [...lines], ...(said !== '' && { more: said }) }
}

function formatSummary(patient: Readonly<Record<string, string>>, sections: readonly Listed[]): string {
  const who = Object.entries(patient).map(([name, value]) => `${name}: ${value}`)
  const parts = sections.map(({ title, lines, more }) => [
    `${title}:`,
    ...(lines.length > 0 ? lines : more === undefined ? ['none recorded'] : []),
    ...(more === undefined ? [] : [`(${more})`]),
  ])
  return [who.join('; '), ...parts.flat()].join('\n')
}
