import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { type Decimal as ExactDecimal, toPlain } from '../../fhir/index.ts'

export function Decimal(schema: TSchema = Type.Number()) {
  return Type.Unsafe<ExactDecimal>(schema)
}

export function fitsSchema<Schema extends TSchema>(schema: Schema, value: unknown): value is Static<Schema> {
  return Value.Check(schema, toPlain(value))
}

// In R4, an array of primitives contains null where only an extension is known.
const Text = Type.Union([Type.String(), Type.Null()])

const Coding = Type.Object({
  system: Type.Optional(Type.String()),
  code: Type.Optional(Type.String()),
  display: Type.Optional(Type.String()),
})

export const CodeableConcept = Type.Object({
  coding: Type.Optional(Type.Array(Coding)),
  text: Type.Optional(Type.String()),
})

const Reference = Type.Object({
  reference: Type.Optional(Type.String()),
  display: Type.Optional(Type.String()),
})

export const Patient = Type.Object(
  {
    resourceType: Type.Literal('Patient'),
    id: Type.String(),
    name: Type.Optional(
      Type.Array(
        Type.Object({ family: Type.Optional(Type.String()), given: Type.Optional(Type.Array(Text)) }),
      ),
    ),
    birthDate: Type.Optional(
      Type.String({ description: 'A FHIR date; may be only a year, or a year and month.' }),
    ),
    gender: Type.Optional(Type.String()),
  },
  { description: 'A FHIR R4 Patient, as the FHIR server has it.' },
)

export const Condition = Type.Object(
  {
    resourceType: Type.Literal('Condition'),
    id: Type.Optional(Type.String()),
    code: Type.Optional(CodeableConcept),
    recordedDate: Type.Optional(Type.String()),
    clinicalStatus: Type.Optional(CodeableConcept),
    verificationStatus: Type.Optional(CodeableConcept),
  },
  { description: 'A FHIR R4 Condition.' },
)

export const MedicationRequest = Type.Object(
  {
    resourceType: Type.Literal('MedicationRequest'),
    id: Type.Optional(Type.String()),
    status: Type.Optional(Type.String()),
    medicationCodeableConcept: Type.Optional(CodeableConcept),
    medicationReference: Type.Optional(Reference),
    authoredOn: Type.Optional(Type.String()),
    contained: Type.Optional(Type.Array(Type.Unknown())),
    dosageInstruction: Type.Optional(Type.Array(Type.Object({ text: Type.Optional(Type.String()) }))),
  },
  { description: 'A FHIR R4 MedicationRequest.' },
)

const Quantity = Type.Object({
  value: Type.Optional(Decimal()),
  unit: Type.Optional(Type.String()),
  code: Type.Optional(Type.String()),
})

export const Observation = Type.Object(
  {
    resourceType: Type.Literal('Observation'),
    id: Type.Optional(Type.String()),
    status: Type.Optional(Type.String()),
    code: Type.Optional(CodeableConcept),
    effectiveDateTime: Type.Optional(Type.String()),
    effectiveInstant: Type.Optional(Type.String()),
    effectivePeriod: Type.Optional(
      Type.Object({ start: Type.Optional(Type.String()), end: Type.Optional(Type.String()) }),
    ),
    valueQuantity: Type.Optional(Quantity),
    component: Type.Optional(
      Type.Array(
        Type.Object({ code: Type.Optional(CodeableConcept), valueQuantity: Type.Optional(Quantity) }),
      ),
    ),
  },
  { description: 'A FHIR R4 Observation of the category vital-signs.' },
)

export type Patient = Static<typeof Patient>
export type CodeableConcept = Static<typeof CodeableConcept>
export type Condition = Static<typeof Condition>
export type MedicationRequest = Static<typeof MedicationRequest>
export type Observation = Static<typeof Observation>

export function formatConcept(concept: CodeableConcept | undefined): string | undefined {
  const named = concept?.coding?.find(({ display }) => display !== undefined)
  const text = concept?.text ?? named?.display ?? concept?.coding?.[0]?.code
  return text === undefined || text.trim() === '' ? undefined : text.trim()
}
