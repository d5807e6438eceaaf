import type { ContactPoint, HumanName, Patient } from 'fhir/r4.js'
import { type Day, dateText, instantText, momentOn } from '../calendar.ts'
import { languages, streets, towns } from '../catalogue/names.ts'
import type { Chart } from '../chart.ts'
import { coded, systems } from '../coding.ts'
import { ageOn, type Person } from '../people.ts'
import { organizationReference, practitionerReference } from './staff.ts'

export function patientRecord(chart: Chart): Patient {
  const { person, random, end } = chart
  const [town, postalCode] = random.pick(towns)
  const [language, languageName] = random.pick(languages)
  return {
    resourceType: 'Patient',
    id: patientId(person),
    // Distinguishes them from imported patients: only for these do the pages say "Sample data".
    meta: { tag: [{ system: systems.actReason, code: 'HTEST', display: 'test health data' }] },
    ...(person.mrn !== undefined && { identifier: [mrn(person.mrn)] }),
    active: true,
    name: [nameOf(person)],
    telecom: telecomOf(chart),
    gender: person.gender,
    ...birthDate(person, chart),
    ...(person.died !== undefined && { deceasedDateTime: dateText(person.died) }),
    address: [
      {
        use: 'home',
        line: [`${random.int(1, 240)} ${random.pick(streets)}`],
        city: town,
        postalCode,
        country: 'US',
      },
    ],
    ...(ageOn(person, end) >= 18 && { maritalStatus: maritalStatus(chart) }),
    ...(person.multipleBirth !== undefined && { multipleBirthInteger: person.multipleBirth }),
    communication: [
      {
        language: { ...coded(systems.language, language, languageName), text: languageName },
        preferred: true,
      },
    ],
    generalPractitioner: [practitionerReference(ageOn(person, end) < 16 ? 'lindqvist' : 'valcourt')],
    managingOrganization: organizationReference,
  }
}

export function patientId(person: Person): string {
  return `patient-${person.number}`
}

function mrn(value: string) {
  return {
    use: 'usual' as const,
    type: { ...coded(systems.identifierType, 'MR', 'Medical record number'), text: 'MRN' },
    system: systems.mrn,
    value,
  }
}

function nameOf({ family, given, prefix, suffix }: Person): HumanName {
  return {
    use: 'official',
    family,
    given: [...given],
    ...(prefix !== undefined && { prefix: [...prefix] }),
    ...(suffix !== undefined && { suffix: [...suffix] }),
  }
}

/** As much of the date as is known; for the very young the time too, because their age is shown in hours. */
function birthDate(person: Person, chart: Chart): Pick<Patient, 'birthDate' | '_birthDate'> {
  const whole = dateText(person.born)
  if (person.known === 'nothing') return {}
  if (person.known === 'year') return { birthDate: whole.slice(0, 4) }
  if (person.known === 'month') return { birthDate: whole.slice(0, 7) }
  const young = chart.end - person.born <= 28
  return young ? { birthDate: whole, _birthDate: birthTime(person.born) } : { birthDate: whole }
}

function birthTime(born: Day): NonNullable<Patient['_birthDate']> {
  return {
    extension: [
      {
        url: 'http://hl7.org/fhir/StructureDefinition/patient-birthTime',
        valueDateTime: instantText(momentOn(born, 252)),
      },
    ],
  }
}

/** Telephone numbers that are kept free for fiction (555-01xx) and a mail domain that nobody has (RFC 2606). */
function telecomOf({ person, random }: Chart): ContactPoint[] {
  const phone: ContactPoint = {
    system: 'phone',
    value: `+1-${random.pick(['207', '413', '603', '802'])}-555-01${String(random.int(0, 99)).padStart(2, '0')}`,
    use: random.chance(0.6) ? 'mobile' : 'home',
  }
  return random.chance(0.4)
    ? [phone, { system: 'email', value: `${patientId(person)}@example.org` }]
    : [phone]
}

const maritalStatuses = [
  ['M', 'Married'],
  ['M', 'Married'],
  ['S', 'Never Married'],
  ['D', 'Divorced'],
  ['W', 'Widowed'],
] as const

function maritalStatus({ random, person, end }: Chart) {
  const [code, display] = random.pick(maritalStatuses)
  return ageOn(person, end) < 24
    ? coded(systems.maritalStatus, 'S', 'Never Married')
    : coded(systems.maritalStatus, code, display)
}
