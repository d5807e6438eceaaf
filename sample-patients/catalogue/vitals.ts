/** A vital sign, social history item or survey score: LOINC code and name, unit (UCUM) and digits after the point. */
export interface VitalEntry {
  readonly loinc: string
  readonly display: string
  readonly text: string
  readonly unit: string
  readonly unitText: string
  readonly digits: number
}

export const vitals = {
  heartRate: vital('8867-4', 'Heart rate', '/min', 'beats/minute', 0),
  respiratoryRate: vital('9279-1', 'Respiratory rate', '/min', 'breaths/minute', 0),
  temperature: vital('8310-5', 'Body temperature', 'Cel', '°C', 1),
  weight: vital('29463-7', 'Body weight', 'kg', 'kg', 1),
  height: vital('8302-2', 'Body height', 'cm', 'cm', 1),
  bmi: vital('39156-5', 'Body mass index (BMI) [Ratio]', 'kg/m2', 'kg/m2', 1, 'Body mass index'),
  oxygen: vital(
    '59408-5',
    'Oxygen saturation in Arterial blood by Pulse oximetry',
    '%',
    '%',
    0,
    'Oxygen saturation',
  ),
  headSize: vital('9843-4', 'Head Occipital-frontal circumference', 'cm', 'cm', 1, 'Head circumference'),
} as const satisfies Record<string, VitalEntry>

export type VitalKey = keyof typeof vitals

export const bloodPressure = {
  panel: ['85354-9', 'Blood pressure panel with all children optional', 'Blood pressure'],
  systolic: ['8480-6', 'Systolic blood pressure'],
  diastolic: ['8462-4', 'Diastolic blood pressure'],
} as const

export const surveys = {
  phq9: {
    loinc: '44261-6',
    display: 'Patient Health Questionnaire 9 item (PHQ-9) total score [Reported]',
    text: 'PHQ-9 score',
  },
  gad7: {
    loinc: '70274-6',
    display: 'Generalized anxiety disorder 7 item (GAD-7) total score [Reported.PHQ]',
    text: 'GAD-7 score',
  },
  mmse: { loinc: '72106-8', display: 'Total score [MMSE]', text: 'MMSE score' },
} as const

export type SurveyKey = keyof typeof surveys

export const smoking = {
  loinc: '72166-2',
  display: 'Tobacco smoking status',
  statuses: {
    never: ['266919005', 'Never smoked tobacco'],
    former: ['8517006', 'Ex-smoker'],
    daily: ['449868002', 'Smokes tobacco daily'],
  },
} as const

export type SmokingStatus = keyof typeof smoking.statuses

function vital(
  loinc: string,
  display: string,
  unit: string,
  unitText: string,
  digits: number,
  text = display,
): VitalEntry {
  return { loinc, display, text, unit, unitText, digits }
}
