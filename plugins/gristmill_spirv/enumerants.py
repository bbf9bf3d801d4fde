"""Numbers of SPIR-V that this package writes, by their names in the specification (unified 1.6, section 3).

Names that are words of Python end with an underscore.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Op(IntEnum):
    """Instructions (section 3.49)."""

    Undef = 1
    Name = 5
    MemberName = 6
    String = 7
    Line = 8
    Extension = 10
    ExtInstImport = 11
    ExtInst = 12
    MemoryModel = 14
    EntryPoint = 15
    ExecutionMode = 16
    Capability = 17
    TypeVoid = 19
    TypeBool = 20
    TypeInt = 21
    TypeFloat = 22
    TypeVector = 23
    TypeArray = 28
    TypeRuntimeArray = 29
    TypeStruct = 30
    TypePointer = 32
    TypeFunction = 33
    TypeForwardPointer = 39
    ConstantTrue = 41
    ConstantFalse = 42
    Constant = 43
    ConstantComposite = 44
    ConstantNull = 46
    SpecConstant = 50
    SpecConstantComposite = 51
    SpecConstantOp = 52
    Function = 54
    FunctionParameter = 55
    FunctionEnd = 56
    FunctionCall = 57
    Variable = 59
    Load = 61
    Store = 62
    AccessChain = 65
    InBoundsAccessChain = 66
    PtrAccessChain = 67
    ArrayLength = 68
    Decorate = 71
    MemberDecorate = 72
    VectorExtractDynamic = 77
    VectorShuffle = 79
    CompositeConstruct = 80
    CompositeExtract = 81
    CompositeInsert = 82
    CopyObject = 83
    ConvertFToU = 109
    ConvertFToS = 110
    ConvertSToF = 111
    ConvertUToF = 112
    UConvert = 113
    SConvert = 114
    FConvert = 115
    ConvertPtrToU = 117
    ConvertUToPtr = 120
    Bitcast = 124
    SNegate = 126
    FNegate = 127
    IAdd = 128
    FAdd = 129
    ISub = 130
    FSub = 131
    IMul = 132
    FMul = 133
    UDiv = 134
    SDiv = 135
    FDiv = 136
    UMod = 137
    SRem = 138
    SMod = 139
    FRem = 140
    UMulExtended = 151
    SMulExtended = 152
    IsNan = 156
    IsInf = 157
    LogicalEqual = 164
    LogicalNotEqual = 165
    LogicalOr = 166
    LogicalAnd = 167
    LogicalNot = 168
    Select = 169
    IEqual = 170
    INotEqual = 171
    UGreaterThan = 172
    SGreaterThan = 173
    UGreaterThanEqual = 174
    SGreaterThanEqual = 175
    ULessThan = 176
    SLessThan = 177
    ULessThanEqual = 178
    SLessThanEqual = 179
    FOrdEqual = 180
    FUnordEqual = 181
    FOrdNotEqual = 182
    FUnordNotEqual = 183
    FOrdLessThan = 184
    FUnordLessThan = 185
    FOrdGreaterThan = 186
    FUnordGreaterThan = 187
    FOrdLessThanEqual = 188
    FUnordLessThanEqual = 189
    FOrdGreaterThanEqual = 190
    FUnordGreaterThanEqual = 191
    ShiftRightLogical = 194
    ShiftRightArithmetic = 195
    ShiftLeftLogical = 196
    BitwiseOr = 197
    BitwiseXor = 198
    BitwiseAnd = 199
    Not = 200
    BitFieldInsert = 201
    BitFieldSExtract = 202
    BitFieldUExtract = 203
    BitReverse = 204
    BitCount = 205
    ControlBarrier = 224
    MemoryBarrier = 225
    AtomicLoad = 227
    AtomicStore = 228
    AtomicExchange = 229
    AtomicCompareExchange = 230
    AtomicIIncrement = 232
    AtomicIAdd = 234
    AtomicISub = 235
    AtomicSMin = 236
    AtomicUMin = 237
    AtomicSMax = 238
    AtomicUMax = 239
    AtomicAnd = 240
    AtomicOr = 241
    AtomicXor = 242
    Phi = 245
    LoopMerge = 246
    SelectionMerge = 247
    Label = 248
    Branch = 249
    BranchConditional = 250
    Return = 253
    ReturnValue = 254
    Unreachable = 255
    ExecutionModeId = 331
    GroupNonUniformAll = 334
    GroupNonUniformAny = 335
    GroupNonUniformAllEqual = 336
    GroupNonUniformBroadcast = 337
    GroupNonUniformBroadcastFirst = 338
    GroupNonUniformBallot = 339
    GroupNonUniformShuffle = 345
    GroupNonUniformShuffleXor = 346
    GroupNonUniformShuffleUp = 347
    GroupNonUniformShuffleDown = 348
    GroupNonUniformIAdd = 349
    GroupNonUniformFAdd = 350
    SDot = 4450
    UDot = 4451
    SUDot = 4452
    SDotAccSat = 4453
    UDotAccSat = 4454
    SUDotAccSat = 4455
    AtomicFAddEXT = 6035
    TypeCooperativeMatrixKHR = 4456
    CooperativeMatrixLoadKHR = 4457
    CooperativeMatrixStoreKHR = 4458
    CooperativeMatrixMulAddKHR = 4459


class Capability(IntEnum):
    """What a module needs of a device (3.31)."""

    Shader = 1
    Float16 = 9
    Float64 = 10
    Int64 = 11
    Int64Atomics = 12
    Int16 = 22
    Int8 = 39
    GroupNonUniform = 61
    GroupNonUniformVote = 62
    GroupNonUniformArithmetic = 63
    GroupNonUniformBallot = 64
    GroupNonUniformShuffle = 65
    GroupNonUniformShuffleRelative = 66
    WorkgroupMemoryExplicitLayoutKHR = 4428
    WorkgroupMemoryExplicitLayout8BitAccessKHR = 4429
    WorkgroupMemoryExplicitLayout16BitAccessKHR = 4430
    StorageBuffer16BitAccess = 4433
    UniformAndStorageBuffer16BitAccess = 4434
    StoragePushConstant16 = 4435
    VariablePointersStorageBuffer = 4441
    VariablePointers = 4442
    StorageBuffer8BitAccess = 4448
    UniformAndStorageBuffer8BitAccess = 4449
    StoragePushConstant8 = 4450
    DenormPreserve = 4464
    DenormFlushToZero = 4465
    SignedZeroInfNanPreserve = 4466
    RoundingModeRTE = 4467
    VulkanMemoryModel = 5345
    VulkanMemoryModelDeviceScope = 5346
    PhysicalStorageBufferAddresses = 5347
    DotProductInputAll = 6016
    DotProductInput4x8Bit = 6017
    DotProductInput4x8BitPacked = 6018
    DotProduct = 6019
    CooperativeMatrixKHR = 6022
    AtomicFloat32AddEXT = 6033
    AtomicFloat64AddEXT = 6034


class StorageClass(IntEnum):
    """Where a variable lives (3.7)."""

    Input = 1
    Uniform = 2
    Workgroup = 4
    Private = 6
    Function = 7
    PushConstant = 9
    StorageBuffer = 12
    PhysicalStorageBuffer = 5349


class Decoration(IntEnum):
    """What is said of an id (3.20)."""

    SpecId = 1
    Block = 2
    ArrayStride = 6
    BuiltIn = 11
    Restrict = 19
    Aliased = 20
    Volatile = 21
    Coherent = 23
    NonWritable = 24
    NonReadable = 25
    Binding = 33
    DescriptorSet = 34
    Offset = 35
    FPRoundingMode = 39
    NoContraction = 42
    RestrictPointer = 5355
    AliasedPointer = 5356


class BuiltIn(IntEnum):
    """Variables that the device fills in (3.21)."""

    NumWorkgroups = 24
    WorkgroupSize = 25
    WorkgroupId = 26
    LocalInvocationId = 27
    GlobalInvocationId = 28
    LocalInvocationIndex = 29
    SubgroupSize = 36
    NumSubgroups = 38
    SubgroupId = 40
    SubgroupLocalInvocationId = 41


class ExecutionMode(IntEnum):
    """What is said of an entry point (3.6)."""

    LocalSize = 17
    LocalSizeId = 38
    DenormPreserve = 4459
    DenormFlushToZero = 4460
    SignedZeroInfNanPreserve = 4461
    RoundingModeRTE = 4462


class ExecutionModel(IntEnum):
    """The kind of an entry point (3.3)."""

    GLCompute = 5


class AddressingModel(IntEnum):
    """Whether pointers are addresses (3.4)."""

    Logical = 0
    PhysicalStorageBuffer64 = 5348


class MemoryModel(IntEnum):
    """The memory model (3.5)."""

    GLSL450 = 1
    Vulkan = 3


class Scope(IntEnum):
    """Which invocations take part (3.27)."""

    CrossDevice = 0
    Device = 1
    Workgroup = 2
    Subgroup = 3
    Invocation = 4
    QueueFamily = 5


class GroupOperation(IntEnum):
    """What is computed over a group (3.28)."""

    Reduce = 0
    InclusiveScan = 1
    ExclusiveScan = 2


class CooperativeMatrixUse(IntEnum):
    """What a cooperative matrix is in products (SPV_KHR_cooperative_matrix)."""

    MatrixAKHR = 0
    MatrixBKHR = 1
    MatrixAccumulatorKHR = 2


class CooperativeMatrixOperands(IntFlag):
    """Which matrices of a product hold signed integers (SPV_KHR_cooperative_matrix)."""

    None_ = 0
    MatrixASignedComponentsKHR = 1
    MatrixBSignedComponentsKHR = 2
    MatrixCSignedComponentsKHR = 4
    MatrixResultSignedComponentsKHR = 8


class PackedVectorFormat(IntEnum):
    """How lanes lie in a word (3.38)."""

    PackedVectorFormat4x8Bit = 0


class MemorySemantics(IntFlag):
    """Which memory is made visible, and in which order (3.25)."""

    Relaxed = 0
    Acquire = 2
    Release = 4
    AcquireRelease = 8
    SequentiallyConsistent = 16
    UniformMemory = 64
    SubgroupMemory = 128
    WorkgroupMemory = 256
    MakeAvailable = 0x2000
    MakeVisible = 0x4000


class SelectionControl(IntFlag):
    """Wishes for branches (3.23)."""

    None_ = 0


class LoopControl(IntFlag):
    """Wishes for loops (3.22)."""

    None_ = 0
    Unroll = 1
    DontUnroll = 2
    PartialCount = 0x100


class MemoryAccess(IntFlag):
    """What is said of an access (3.26)."""

    None_ = 0
    Volatile = 1
    Aligned = 2
    Nontemporal = 4
    MakePointerAvailable = 8
    MakePointerVisible = 16
    NonPrivatePointer = 32


class FunctionControl(IntFlag):
    """Wishes for functions (3.24)."""

    None_ = 0
    Inline = 1
    DontInline = 2
    Pure = 4
    Const = 8
