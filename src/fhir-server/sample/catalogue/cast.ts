import type { ConditionKey } from './conditions.ts'
import type { ServiceKey } from './services.ts'

/** How old: a number of days or months, or the years on the birthday (`MM-DD`). */
export type Age =
  | { readonly days: number }
  | { readonly months: number }
  | { readonly years: number; readonly birthday: string }

/** Someone who is always there, whatever the seed: each shows something that a screen must get right. */
export interface CastEntry {
  readonly family: string
  readonly given: readonly string[]
  readonly prefix?: readonly string[]
  readonly suffix?: readonly string[]
  readonly gender: 'female' | 'male' | 'other' | 'unknown'
  readonly age: Age
  /** How much of the birth date is on record. */
  readonly known?: 'month' | 'year' | 'nothing'
  /** None: a patient without a number of the hospital. */
  readonly mrn?: string
  readonly diedDaysAgo?: number
  /** Conditions with the days since they were found. Undefined: drawn by chance. */
  readonly story?: readonly (readonly [ConditionKey, number])[]
  readonly inProgress?: ServiceKey
  readonly multipleBirth?: number
}

const year = 365.25

export const cast: readonly CastEntry[] = [
  {
    family: 'Juniper',
    given: ['Alba'],
    prefix: ['Ms'],
    gender: 'female',
    age: { years: 68, birthday: '03-14' },
    mrn: 'SYN-004127',
    story: [
      ['atrialFibrillation', 42],
      ['type2Diabetes', 5.5 * year],
      ['hypothyroidism', 8.75 * year],
      ['hypertension', 12.1 * year],
      ['forearmFracture', 7.4 * year],
    ],
    inProgress: 'cardiology',
  },
  {
    family: 'Juniper',
    given: ['Alban'],
    gender: 'male',
    age: { years: 41, birthday: '03-14' },
    mrn: 'SYN-004721',
    story: [
      ['asthma', 19 * year],
      ['reflux', 3.2 * year],
      ['bronchitis', 0.8 * year],
    ],
  },
  {
    family: 'Fennel',
    given: ['Baby'],
    gender: 'male',
    age: { days: 6 },
    mrn: 'SYN-004170',
    story: [['neonatalJaundice', 4]],
    inProgress: 'newborn',
  },
  {
    family: 'Limestone',
    given: ['Edith'],
    gender: 'female',
    age: { years: 82, birthday: '08-11' },
    mrn: 'SYN-004192',
    diedDaysAgo: 620,
    story: [
      ['heartFailure', 5.1 * year],
      ['atrialFibrillation', 6.3 * year],
      ['chronicKidneyDisease', 4.2 * year],
      ['hypertension', 21 * year],
      ['pneumonia', 690],
    ],
  },
  {
    family: 'Feldspar-Quartermaine',
    given: ['Wilhelmina', 'Anastasia'],
    prefix: ['Mrs'],
    gender: 'female',
    age: { years: 87, birthday: '12-04' },
    mrn: 'SYN-004163',
    story: [
      ['alzheimers', 2.2 * year],
      ['fallRisk', 1.4 * year],
      ['osteoporosis', 9 * year],
      ['hypertension', 17 * year],
      ['cataract', 4 * year],
      ['urinaryInfection', 0.6 * year],
    ],
    inProgress: 'ward',
  },
  {
    family: 'Bracken',
    given: ['Otis'],
    gender: 'male',
    age: { months: 42 },
    mrn: 'SYN-004140',
    story: [
      ['atopicDermatitis', 2.6 * year],
      ['otitisMedia', 0.9 * year],
      ['gastroenteritis', 0.3 * year],
    ],
  },
  {
    family: 'Pumice',
    given: ['Rafael'],
    gender: 'male',
    age: { years: 46, birthday: '06-15' },
    known: 'nothing',
    mrn: 'SYN-004226',
    story: [['ankleSprain', 12]],
  },
  {
    family: 'Slate',
    given: ['Nadia'],
    gender: 'other',
    age: { years: 30, birthday: '12-19' },
    mrn: 'SYN-004267',
    story: [
      ['depression', 2.4 * year],
      ['migraine', 9 * year],
      ['stress', 1.1 * year],
    ],
    inProgress: 'mentalHealth',
  },
  {
    family: 'Obsidian',
    given: ['Þóra'],
    gender: 'female',
    age: { years: 27, birthday: '04-22' },
    mrn: 'SYN-004211',
    story: [
      ['pregnancy', 150],
      ['ironDeficiency', 90],
      ['appendicitis', 6 * year],
    ],
    inProgress: 'antenatal',
  },
  {
    family: 'Ashlar',
    given: ['Tobias', 'Emeka'],
    gender: 'male',
    age: { years: 76, birthday: '11-27' },
    mrn: 'SYN-004118',
    story: [
      ['copd', 8 * year],
      ['coronaryDisease', 4.4 * year],
      ['hyperlipidemia', 15 * year],
      ['prostaticHyperplasia', 6 * year],
      ['livesAlone', 2 * year],
      ['pneumonia', 1.2 * year],
    ],
  },
  {
    family: 'Marlpit',
    given: ['Søren'],
    gender: 'male',
    age: { months: 205 },
    mrn: 'SYN-004205',
    story: [
      ['type1Diabetes', 6.2 * year],
      ['strepThroat', 1.7 * year],
    ],
    inProgress: 'diabetes',
  },
  {
    family: 'Basalt',
    given: ['Inés'],
    gender: 'female',
    age: { years: 43, birthday: '06-30' },
    mrn: 'SYN-004131',
    story: [
      ['rheumatoidArthritis', 5.3 * year],
      ['anxiety', 3.1 * year],
      ['covid', 2.2 * year],
    ],
  },
  {
    family: 'Quartz',
    given: ['Leonie'],
    gender: 'female',
    age: { months: 14 },
    mrn: 'SYN-004234',
    story: [
      ['bronchiolitis', 200],
      ['otitisMedia', 60],
    ],
  },
  {
    family: 'Cedarwood',
    given: ['Amara'],
    gender: 'female',
    age: { years: 50, birthday: '09-18' },
    mrn: 'SYN-004155',
  },
  {
    family: 'Thistle',
    given: ['Gwenllian'],
    gender: 'female',
    age: { years: 73, birthday: '10-21' },
    mrn: 'SYN-004288',
  },
  {
    family: 'Rowan',
    given: ['Idris'],
    gender: 'male',
    age: { years: 39, birthday: '07-16' },
    mrn: 'SYN-004240',
    story: [],
  },
  {
    family: 'Sandstone',
    given: ['Mei-Lin'],
    gender: 'female',
    age: { years: 64, birthday: '02-28' },
    mrn: 'SYN-004259',
    story: [
      ['breastCancer', 1.6 * year],
      ['hypothyroidism', 11 * year],
      ['osteoporosis', 2.1 * year],
    ],
  },
  {
    family: 'Tamarisk',
    given: ['Yusuf'],
    gender: 'male',
    age: { years: 55, birthday: '05-05' },
    mrn: 'SYN-004273',
    story: [
      ['type2Diabetes', 7.8 * year],
      ['hyperlipidemia', 6.9 * year],
      ['obesity', 12 * year],
      ['sleepApnea', 3.3 * year],
      ['gout', 2.5 * year],
    ],
    inProgress: 'diabetes',
  },
  {
    family: 'Larch',
    given: ['Ngozi'],
    gender: 'female',
    age: { years: 57, birthday: '01-25' },
    mrn: 'SYN-004188',
  },
  {
    family: 'Alder',
    given: ['Maren'],
    gender: 'female',
    age: { years: 35, birthday: '02-09' },
    mrn: 'SYN-004102',
    story: [
      ['asthma', 21 * year],
      ['allergicRhinitis', 18 * year],
      ['urinaryInfection', 1.3 * year],
    ],
  },
  {
    family: 'Birchfield-Montmorency-Ashgrove',
    given: ['Maximiliana', 'Guadalupe', 'Seraphina'],
    prefix: ['Prof.', 'Dr.'],
    suffix: ['PhD'],
    gender: 'female',
    age: { years: 62, birthday: '09-30' },
    mrn: 'SYN-004136',
  },
  {
    family: 'Dogwood',
    given: ['Ezekiel'],
    gender: 'male',
    age: { years: 84, birthday: '05-17' },
    known: 'month',
    mrn: 'SYN-004158',
  },
  {
    family: 'Elder',
    given: ['Sidney'],
    gender: 'unknown',
    age: { years: 47, birthday: '07-01' },
    known: 'year',
    mrn: 'SYN-004161',
    story: [['forearmFracture', 1]],
    inProgress: 'emergency',
  },
  { family: 'Flint', given: ['Casimir'], gender: 'male', age: { years: 29, birthday: '08-23' } },
  {
    family: 'Hawthorn',
    given: ['Cornelius', 'Aurelio'],
    suffix: ['Jr.'],
    gender: 'male',
    age: { years: 97, birthday: '01-06' },
    mrn: 'SYN-004183',
    story: [
      ['heartFailure', 3.4 * year],
      ['hypertension', 30 * year],
      ['kneeArthritis', 19 * year],
      ['fallRisk', 2.6 * year],
      ['livesAlone', 5 * year],
      ['prostaticHyperplasia', 16 * year],
    ],
  },
  {
    family: 'Gypsum',
    given: ['Thảo', 'Nguyên'],
    gender: 'female',
    age: { years: 22, birthday: '03-03' },
    mrn: 'SYN-004179',
    story: [
      ['epilepsy', 4.1 * year],
      ['covid', 3.3 * year],
    ],
  },
  {
    family: 'Alabaster',
    given: ['Zoë'],
    gender: 'female',
    age: { years: 9, birthday: '05-29' },
    mrn: 'SYN-004101',
    story: [
      ['asthma', 3.5 * year],
      ['forearmFracture', 1.1 * year],
    ],
    inProgress: 'children',
  },
  {
    family: 'Granite',
    given: ['Oluwaseun'],
    prefix: ['Dr.'],
    gender: 'male',
    age: { years: 51, birthday: '11-11' },
    mrn: 'SYN-004175',
    story: [
      ['hypertension', 4.3 * year],
      ['prediabetes', 1.8 * year],
    ],
  },
  {
    family: 'Sorrel',
    given: ['Twin One'],
    gender: 'female',
    age: { days: 1 },
    mrn: 'SYN-004270',
    story: [],
    inProgress: 'newborn',
    multipleBirth: 1,
  },
  {
    family: 'Sorrel',
    given: ['Twin Two'],
    gender: 'female',
    age: { days: 1 },
    mrn: 'SYN-004271',
    story: [],
    inProgress: 'newborn',
    multipleBirth: 2,
  },
]
