import { isRecord, toPlainLine } from '../../core/index.ts'
import type { Resource } from '../../fhir/index.ts'

/** What the patient is to the user, by what the user is to the patient (HL7 v3 RoleCode). */
const RELATIONS: readonly (readonly [patient: string, codesOfUser: string])[] = [
  [
    'Your child',
    'PRN FTH MTH NPRN NFTH NMTH GESTM ADOPTP ADOPTF ADOPTM PRNFOST FTHFOST MTHFOST STPPRN STPFTH STPMTH',
  ],
  [
    'Your parent',
    'CHILD DAUC SONC NCHILD DAU SON CHLDADOPT DAUADOPT SONADOPT CHLDFOST DAUFOST SONFOST STPCHLD STPDAU STPSON',
  ],
  ['Your grandchild', 'GRPRN GRFTH GRMTH MGRPRN MGRFTH MGRMTH PGRPRN PGRFTH PGRMTH'],
  ['Your grandparent', 'GRNDCHILD GRNDDAU GRNDSON'],
  [
    'Your brother or sister',
    'SIB BRO SIS NSIB NBRO NSIS HSIB HBRO HSIS STPSIB STPBRO STPSIS TWIN TWINBRO TWINSIS',
  ],
  ['Your husband, wife or partner', 'SPS HUSB WIFE DOMPART SIGOTHR'],
  ['You are the guardian', 'GUARD'],
]

const BY_CODE: ReadonlyMap<unknown, string> = new Map(
  RELATIONS.flatMap(([patient, codes]) => codes.split(' ').map(code => [code, patient] as const)),
)

const ROLE_CODES: ReadonlySet<unknown> = new Set([
  'http://terminology.hl7.org/CodeSystem/v3-RoleCode',
  'http://hl7.org/fhir/v3/RoleCode',
])

/** Describes the patient of a RelatedPerson to that person: `Your child`. Undefined if no known code says it. */
export function findRelation(person: Resource): string | undefined {
  return listConcepts(person)
    .flatMap(listCodings)
    .map(({ system, code }) => (ROLE_CODES.has(system) ? BY_CODE.get(code) : undefined))
    .find(relation => relation !== undefined)
}

/** What a RelatedPerson is to the patient, as recorded: `mother`. */
export function readRelationship(person: Resource): string | undefined {
  const texts = listConcepts(person).map(
    concept => [concept, ...listCodings(concept)].flatMap(({ text, display }) => text ?? display ?? [])[0],
  )
  const found = texts.filter(text => typeof text === 'string').map(toPlainLine)
  return found.join(', ') || undefined
}

type Fields = Readonly<Record<string, unknown>>

function listConcepts({ relationship }: Resource): readonly Fields[] {
  return [relationship].flat().filter(isRecord)
}

function listCodings({ coding }: Fields): readonly Fields[] {
  return [coding].flat().filter(isRecord)
}
