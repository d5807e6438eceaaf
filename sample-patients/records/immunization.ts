import type { Immunization } from 'fhir/r4.js'
import { type Day, dateText, dayMs } from '../calendar.ts'
import { type VaccineEntry, vaccines } from '../catalogue/vaccines.ts'
import type { Chart, Numbering } from '../chart.ts'
import { coded, concept, reference, systems } from '../coding.ts'
import { ageOn } from '../people.ts'
import { patientId } from './patient.ts'

/** Vaccines in the order they were given. Those of childhood are on record for children only. */
export function* immunizationRecords(chart: Chart, numbering: Numbering): Generator<Immunization> {
  const given = Object.values(vaccines).flatMap((vaccine: VaccineEntry) =>
    dueDays(vaccine, chart).map(day => ({ vaccine, day })),
  )
  for (const { vaccine, day } of given.sort((a, b) => a.day - b.day)) {
    if (chart.random.chance(0.93)) yield immunizationRecord(vaccine, day, chart, numbering)
  }
}

function dueDays(vaccine: VaccineEntry, chart: Chart): Day[] {
  const { person, end, random } = chart
  const age = ageOn(person, end)
  const shift = () => random.int(1, 12)
  const days =
    vaccine.seasonal === true
      ? seasons(chart)
      : vaccine.months !== undefined
        ? age > 18
          ? []
          : vaccine.months.map(
              months => person.born + Math.round(months * 30.44) + (months === 0 ? 0 : shift()),
            )
        : (vaccine.years ?? [])
            .filter(years => age < years + (age > 18 ? 12 : 20))
            .map(years => person.born + Math.round(years * 365.25) + shift())
  return days.filter(day => day <= end - 1 && isInUse(vaccine, day))
}

function isInUse({ from = 0, until = 9999 }: VaccineEntry, day: Day): boolean {
  const year = new Date(day * dayMs).getUTCFullYear()
  return year >= from && year <= until
}

/** The last three autumns, for those who go. */
function seasons({ person, end, random }: Chart): Day[] {
  const year = new Date(end * dayMs).getUTCFullYear()
  const goes = ageOn(person, end) >= 65 ? 0.8 : 0.45
  return [year - 2, year - 1, year]
    .map(of => Math.floor(Date.UTC(of, 9, 1) / dayMs) + random.int(0, 40))
    .filter(day => day - person.born > 183 && random.chance(goes))
}

function immunizationRecord(
  vaccine: VaccineEntry,
  day: Day,
  chart: Chart,
  numbering: Numbering,
): Immunization {
  const refused = ageOn(chart.person, day) > 17 && chart.random.chance(0.03)
  return {
    resourceType: 'Immunization',
    id: numbering('immunization'),
    status: refused ? 'not-done' : 'completed',
    ...(refused && {
      statusReason: coded(
        'http://terminology.hl7.org/CodeSystem/v3-ActReason',
        'PATOBJ',
        'patient objection',
      ),
    }),
    vaccineCode: concept(systems.cvx, vaccine.cvx, vaccine.display),
    patient: reference('Patient', patientId(chart.person)),
    occurrenceDateTime: dateText(day),
    primarySource: true,
  }
}
